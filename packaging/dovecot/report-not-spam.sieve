# SPDX-License-Identifier: GPL-3.0-or-later
# A message was taken out of the Junk folder of a user, who thereby says that it is no spam.
require ["vnd.dovecot.pipe", "copy", "imapsieve", "environment", "variables"];

# Who throws it away does not speak for it.
if environment :matches "imap.mailbox" ["Trash", "Trash/*", "Trash.*", "Deleted Items", "Deleted Messages"] {
  stop;
}
if environment :matches "imap.user" "*" {
  pipe :copy "bulkmark-report" ["--not-spam", "${1}"];
}
