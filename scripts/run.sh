# `sh scripts/run.sh FILE …`, in the repository's folder: runs a script of the workshop, with everything installed.
set -eu

scope=all
. ./scripts/install.sh

exec "$node" "$@"
