# SPDX-License-Identifier: GPL-3.0-or-later
# A user moved a message into the Junk folder, and thereby reports it as spam.
require ["vnd.dovecot.pipe", "copy", "imapsieve", "environment", "variables"];

if environment :matches "imap.user" "*" {
  pipe :copy "bulkmark-report" ["--spam", "${1}"];
}
