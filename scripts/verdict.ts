/** What is known of a run of `scripts/test.ts` when it ends. */
export interface Run {
  readonly passed: number
  /** Failed tests, and errors outside tests. */
  readonly failed: number
  readonly skipped: number
  failedChecks: ReadonlyArray<string>
  /** Why the run ended before its last test; `undefined` if it did not. */
  stopped: string | undefined
}

/**
 * The last line of a run, which tools read: `green: N passed, 0 failed` or `red: N passed, N failed`. Each failed check, and a run that
 * stopped early, count as one failure.
 */
export const verdict = ({ failed, failedChecks, passed, skipped, stopped }: Run): string => {
  const failures = failed + failedChecks.length + (stopped === undefined ? 0 : 1)
  const counts = `${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`
  return `${failures === 0 ? "green" : "red"}: ${counts}`
}

const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/**
 * Begins the run of this process, and prints its verdict when the process ends for whatever reason. A signal aborts `signal` and ends
 * the process.
 */
export const begin = (): { readonly run: Run; readonly signal: AbortSignal } => {
  const run: Run = { passed: 0, failed: 0, skipped: 0, failedChecks: [], stopped: "before the tests" }
  const stop = new AbortController()
  process.once("exit", (code) => {
    if (run.stopped !== undefined) console.log(`Stopped ${run.stopped} (exit code ${code})`)
    if (run.failedChecks.length > 0) console.log(`Failed checks: ${run.failedChecks.join(", ")}`)
    console.log(verdict(run))
  })
  for (const [signal, code] of Object.entries(exitCodes)) {
    process.once(signal, () => {
      run.stopped = `by ${signal}`
      stop.abort()
      process.exit(code)
    })
  }
  return { run, signal: stop.signal }
}
