# Sourced by scripts/start after install.sh. Sets `service` to the bundle of the current sources, and builds it if it does not exist. If
# this machine cannot build, sets it to the sources.

bundles=node_modules/.cache/service

# A checksum of the bundle's inputs. Only contents count, not modification times.
fingerprint() {
  {
    find src docs scripts/bundle scripts/help scripts/console.ts scripts/links.ts -type f -exec cksum {} + | LC_ALL=C sort
    cksum package.json package-lock.json tsconfig.json CHANGELOG.md SECURITY.md
  } | cksum | tr ' ' -
}

# Builds the bundle under the installation lock. Returns 1 if the sources have errors, 3 if this machine cannot build.
build() {
  [ -w . ] && mkdir -p "$bundles" 2>/dev/null && [ -w "$bundles" ] || return 3
  locked
  status=0
  while [ ! -f "$bundles/$made_of.js" ]; do
    printf 'Building the service…\n' >&2
    "$node" scripts/bundle/main.ts "$bundles" "$made_of" >"$lock/bundle.log" 2>&1 </dev/null &
    pids=$!
    wait "$pids" || status=$?
    pids=
    [ "$status" -eq 0 ] || break
    # An edit during the build may be missing from it: build again.
    now=$(fingerprint)
    [ "$now" = "$made_of" ] || rm -f "$bundles/$made_of.js"
    made_of=$now
  done
  [ "$status" -eq 0 ] || cat "$lock/bundle.log" >&2
  unlocked
  return "$status"
}

made_of=$(fingerprint)
status=0
[ -f "$bundles/$made_of.js" ] || build || status=$?
case $status in
  0) service=$PWD/$bundles/$made_of.js ;;
  3)
    service=$PWD/src/main.ts
    printf 'The service cannot be bundled here: it runs from its sources, and starts more slowly.\n' >&2
    ;;
  *) fail "The service could not be built." ;;
esac
