# `sh scripts/run.sh FILE …`, in the repository's folder: runs a development script after installing all packages.
set -eu

scope=all
. ./scripts/install.sh

exec "$node" "$@"
