# Sourced by other scripts in the repository's folder. Installs the locked dependencies unless they are installed, and sets `node` to
# the Node to use. `scope` selects the packages: `run` for running and bundling the service, `all` (the default) for development too,
# `none` for nothing.

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

root=$PWD
scope=${scope:-all}
# The stamp names the machine, the lock file and, for a partial installation, the scope.
stamp=node_modules/.installed
# The stamp of an unfinished installation of scope `run`.
begun="begun run"
everything="$(uname -sm) $(cksum <package-lock.json)"
lock=.install-lock
pids=

installed() {
  [ "$scope" != none ] || return 0
  [ -f "$stamp" ] || return 1
  case $(cat "$stamp") in
    "$everything") ;;
    "$everything run") [ "$scope" = run ] ;;
    *) return 1 ;;
  esac
}

# Sets `node` to the pinned Node, or to the machine's Node if the pinned one cannot run (other platform, other C library).
choose_node() {
  node=$root/node_modules/.bin/node
  "$node" --version >/dev/null 2>&1 || {
    node=$(command -v node) &&
      "$node" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 19) ? 0 : 1)'
  }
}

# Older versions of npm install the pinned Node without linking it.
link_node() {
  for binary in node_modules/node-*/bin/node; do
    [ ! -x "$binary" ] || [ -e node_modules/.bin/node ] || ln -s "../${binary#node_modules/}" node_modules/.bin/node
  done
}

# Whether the packages of the scope are installed without a stamp, as plain npm leaves them. Sets `made` to the missing stamp.
recognised() {
  made=
  packages=$(node scripts/installed.cjs) || packages=none
  # An installation of scope `run` has fewer files of a package than npm records.
  case $packages:$(cat "$stamp" 2>/dev/null) in all:*" run") packages=run ;; esac
  case $packages:$scope in
    all:*) made=$everything ;;
    run:run) made="$everything run" ;;
    *) return 1 ;;
  esac
}

# Takes over the lock of a dead process. Several processes may notice its death; the one that creates the folder inside the lock, and
# then still finds the same owner, takes over.
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

# Waits for the lock, and releases it when the script ends.
locked() {
  acquire
  trap 'rm -rf "$lock"' EXIT
  trap 'stop 130' INT
  trap 'stop 143' TERM
  trap 'stop 129' HUP
}

unlocked() {
  rm -rf "$lock"
  trap - EXIT INT TERM HUP
}

stop() {
  trap - INT TERM HUP
  [ -z "$pids" ] || kill $pids 2>/dev/null || true
  wait
  exit "$1"
}

# Runs a function of this file in the background, with its output in a log. The shell handles a signal only between commands or
# while it waits.
begin() {
  "$1" >"$lock/$1.log" 2>&1 </dev/null &
  pids="$pids $!"
}

# Waits for all background functions. Fails with their output if one fails.
finish() {
  for pid in $pids; do
    wait "$pid" && continue
    kill $pids 2>/dev/null || true
    wait
    cat "$lock"/*.log >&2
    fail "The dependencies could not be installed."
  done
  pids=
}

# Replaces the process by npm. The options make the result independent of the Node version, NODE_ENV and npm's settings.
become_npm() {
  NODE_OPTIONS="${NODE_OPTIONS:-} --require \"$root/scripts/engine.cjs\""
  export NODE_OPTIONS
  exec npm "$@" --include=optional --include=peer --ignore-scripts --prefer-offline \
    --engine-strict=false --no-audit --no-fund --loglevel=error
}

# npm deletes node_modules. A running service may use the cache inside, so the cache is moved away and back.
install_all() {
  [ ! -d node_modules/.cache ] || mv node_modules/.cache "$lock/cache"
  begin install_everything
  finish
  [ ! -d "$lock/cache" ] || mv "$lock/cache" node_modules/.cache
  link_node
  printf '%s\n' "$everything" >"$stamp"
}

install_everything() {
  become_npm ci --include=dev
}

# All packages but Node, in a separate folder.
install_packages() {
  node scripts/withoutNode.cjs "$lock/run" && cd "$lock/run" && become_npm ci --omit=dev
}

# Only the program and the license of Node's package: its other files are larger than all other packages.
install_node() {
  exec node scripts/fetchNode.cjs "$lock/node"
}

# Installs both in parallel, and deletes files that neither run nor get bundled.
install_run() {
  rm -rf "$lock/run" "$lock/node"
  mkdir "$lock/run" "$lock/node"
  begin install_packages
  begin install_node
  finish
  modules=$lock/run/node_modules
  rm -rf "$modules/effect/src"
  find "$modules" -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -exec rm -f {} +
  place_node "$modules"
  mkdir -p node_modules
  printf '%s\n' "$begun" >"$stamp"
  find node_modules -mindepth 1 -maxdepth 1 ! -name .cache ! -name "${stamp##*/}" -exec rm -rf {} +
  mv "$modules"/* "$modules"/.bin "$modules"/.package-lock.json node_modules/
  printf '%s\n' "$everything run" >"$stamp"
}

# Installs Node alone, if only Node is missing.
add_node() {
  rm -rf "$lock/node"
  mkdir "$lock/node"
  begin install_node
  finish
  mkdir -p node_modules/.bin
  place_node node_modules
  printf '%s\n' "$made" >"$stamp"
}

# Moves the fetched Node to the folder $1.
place_node() {
  for package in "$lock"/node/node-*; do
    [ -x "$package/bin/node" ] || continue
    rm -rf "$1/${package##*/}"
    mv "$package" "$1/"
    ln -sf "../${package##*/}/bin/node" "$1/.bin/node"
  done
}

install_dependencies() {
  command -v node >/dev/null && command -v npm >/dev/null ||
    fail "Node.js 18 or later, with npm, is needed to install the dependencies."
  node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' ||
    fail "Node.js 18 or later is needed to install the dependencies; this is $(node --version)."

  locked
  if ! installed; then
    printf 'Installing dependencies (first start only)…\n' >&2
    if recognised; then
      add_node
    else
      # Keep packages that another tool has installed.
      [ "$packages" != more ] || [ "$(cat "$stamp" 2>/dev/null)" = "$begun" ] || scope=all
      "install_$scope"
    fi
  fi
  unlocked
}

if ! installed; then
  if command -v node >/dev/null && recognised && link_node && choose_node; then
    [ ! -w node_modules ] || printf '%s\n' "$made" >"$stamp"
  else
    install_dependencies
  fi
fi

choose_node ||
  fail "The Node.js that comes with the dependencies does not run on this machine: install Node.js 22.19 or later."
