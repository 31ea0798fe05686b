# Sourced by the scripts beside it, in the repository's folder: installs the locked dependencies unless they are there
# already, and sets `node` to the Node to run with.

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

stamp=node_modules/.installed
wanted="$(uname -sm) $(cksum <package-lock.json)"
lock=.install-lock
npm_pid=

installed() {
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]
}

# Takes over the lock of a process that is gone. Only one of those that notice may: the one that makes the folder inside
# it, and that then still finds the same owner.
take_over() {
  mkdir "$lock/heir" 2>/dev/null || return 1
  if [ "$(cat "$lock/pid" 2>/dev/null)" = "$1" ]; then
    echo $$ >"$lock/pid"
    rmdir "$lock/heir"
  else
    rmdir "$lock/heir"
    return 1
  fi
}

# Waits for the lock.
acquire() {
  seconds=0
  until mkdir "$lock" 2>/dev/null; do
    [ -w . ] || fail "Cannot install the dependencies: $PWD is not writable."
    owner=$(cat "$lock/pid" 2>/dev/null || true)
    if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null && take_over "$owner"; then
      return 0
    fi
    [ "$seconds" -ne 2 ] || printf 'Waiting for another installation of the dependencies…\n' >&2
    [ "$seconds" -lt 600 ] || fail "Another installation has not ended in ten minutes. If there is none, delete $PWD/$lock"
    sleep 1
    seconds=$((seconds + 1))
  done
  echo $$ >"$lock/pid"
}

stop() {
  trap - INT TERM HUP
  [ -z "$npm_pid" ] || kill "$npm_pid" 2>/dev/null || true
  wait
  exit "$1"
}

# Becomes npm. The options make the result the same whatever the version of Node, NODE_ENV and npm's own settings say.
become_npm() {
  NODE_OPTIONS="${NODE_OPTIONS:-} --require ./scripts/engine.cjs"
  export NODE_OPTIONS
  exec npm ci --include=dev --include=optional --include=peer --ignore-scripts --prefer-offline \
    --engine-strict=false --no-audit --no-fund --loglevel=error
}

install_dependencies() {
  command -v node >/dev/null && command -v npm >/dev/null ||
    fail "Node.js 18 or later, with npm, is needed to install the dependencies."
  node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' ||
    fail "Node.js 18 or later is needed to install the dependencies; this is $(node --version)."

  acquire
  trap 'rm -rf "$lock"' EXIT
  trap 'stop 130' INT
  trap 'stop 143' TERM
  trap 'stop 129' HUP
  if ! installed; then
    printf 'Installing dependencies (first start only)…\n' >&2
    rm -f "$stamp"
    # In the background, as the shell handles a signal only between commands or while it waits.
    become_npm >"$lock/log" 2>&1 </dev/null &
    npm_pid=$!
    if ! wait "$npm_pid"; then
      cat "$lock/log" >&2
      fail "The dependencies could not be installed."
    fi
    # Older versions of npm install the pinned Node without linking it.
    for binary in node_modules/node-*/bin/node; do
      [ ! -x "$binary" ] || [ -e node_modules/.bin/node ] || ln -s "../${binary#node_modules/}" node_modules/.bin/node
    done
    printf '%s\n' "$wanted" >"$stamp"
  fi
  rm -rf "$lock"
  trap - EXIT INT TERM HUP
}

installed || install_dependencies

# The pinned Node, or the machine's own where the pinned one cannot run (another platform, another C library).
node=$PWD/node_modules/.bin/node
if ! "$node" --version >/dev/null 2>&1; then
  node=$(command -v node) &&
    "$node" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 19) ? 0 : 1)' ||
    fail "The Node.js that comes with the dependencies does not run on this machine: install Node.js 22.19 or later."
fi
