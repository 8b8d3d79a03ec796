# SPDX-License-Identifier: GPL-3.0-or-later
# A message came into the Junk folder of a user, who thereby calls it spam.
require ["vnd.dovecot.pipe", "copy", "imapsieve", "environment", "variables"];

if environment :matches "imap.user" "*" {
  pipe :copy "bulkmark-report" ["--spam", "${1}"];
}
