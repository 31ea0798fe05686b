// Keeps the tests from the clock and from luck: no wait by the machine's time, no measure of time or of the process's memory,
// no second try. What a test waits for tells it, or is looked at (test/support/until.ts); time is moved.
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"

/** Files that may, each with its reason. */
const exceptions: ReadonlyMap<string, string> = new Map([
  ["support/until.ts", "the pace of looking at what tells nobody when it changes"],
  ["support/movedClock.ts", "a running clock that tests move"],
  ["scripts/testRules.test.ts", "says what is found"],
  ["cluster/long/faults.ts", "hours of trouble in minutes, by hand: not part of the suite"]
])

const rules: ReadonlyArray<readonly [pattern: RegExp, instead: string]> = [
  [
    /\b(?:setTimeout|setInterval)\(|timers\/promises/,
    "wait for what happens (test/support/until.ts), or move the clock"
  ],
  [/\bperformance\.now\(|process\.hrtime/, "count steps, not time"],
  [/process\.memoryUsage|process\.resourceUsage/, "count what a structure holds, not the process's memory"],
  [/\bretry: *(?:\d+ *[,}]|\{)/, "a test passes the first time"],
  [
    /\b(?:connect|first_byte|silence|queue|client|drain|attempts): *0?\.\d/,
    "a limit is reached by moving the gateway's clock, not by being short"
  ],
  [/\bAbortSignal\.timeout\(/, "a limit of the machine's time is a race"]
]

/** Effects of a live test run by the machine's time. */
const live = /\bit\.live\b/
const sleep = /\bEffect\.(?:sleep|delay|timeout\w*)\(/

/** What breaks the rules in the text of a test file, by line. */
export const ruleViolations = (file: string, text: string): Array<string> => {
  if (exceptions.has(file)) return []
  const isLive = live.test(text)
  return text.split("\n").flatMap((line, i) => [
    ...rules.filter(([pattern]) => pattern.test(line)).map(([, instead]) => `test/${file}:${i + 1}: ${instead}`),
    ...(isLive && sleep.test(line)
      ? [`test/${file}:${i + 1}: a live test does not sleep: it waits for what happens`]
      : [])
  ])
}

/** The same of all files of the tests. */
export const testRuleViolations = (root: string): Array<string> => {
  const folder = path.join(root, "test")
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => file.replaceAll(path.sep, "/"))
    .filter((file) => file.endsWith(".ts") && !file.startsWith("fixtures/"))
  if (files.length === 0) throw new Error(`no tests below ${folder}`)
  return files.toSorted().flatMap((file) => ruleViolations(file, readFileSync(path.join(folder, file), "utf8")))
}
