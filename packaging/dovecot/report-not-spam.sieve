# SPDX-License-Identifier: GPL-3.0-or-later
# A user moved a message out of the Junk folder, and thereby reports it as not spam.
require ["vnd.dovecot.pipe", "copy", "imapsieve", "environment", "variables"];

# Deleting a message is no report.
if environment :matches "imap.mailbox" ["Trash", "Trash/*", "Trash.*", "Deleted Items", "Deleted Messages"] {
  stop;
}
if environment :matches "imap.user" "*" {
  pipe :copy "bulkmark-report" ["--not-spam", "${1}"];
}
