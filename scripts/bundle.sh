# Sourced by scripts/start after install.sh: sets `service` to the bundle of the sources as they are, which it builds where
# there is none, or to the sources where none can be built.

bundles=node_modules/.cache/service

# What the bundle is made of. Contents alone decide: a file that is only touched changes nothing.
fingerprint() {
  {
    find src scripts/bundle scripts/console.ts -type f -exec cksum {} + | LC_ALL=C sort
    cksum package.json package-lock.json tsconfig.json
  } | cksum | tr ' ' -
}

# Builds, under the lock of the installation. Returns 1 where the sources do not build, 3 where nothing can be built.
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
    # What was changed meanwhile may be in it or not.
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
