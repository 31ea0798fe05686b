// Keeps the tests deterministic: no sleep by the machine's clock, no measurement of time or of the process's memory, no retry. A test
// waits for an event or polls for a condition (test/support/until.ts), and moves the clock. Its title is a sentence.
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"

/** Files that the rules do not apply to, each with its reason. */
const exceptions: ReadonlyMap<string, string> = new Map([
  ["support/until.ts", "the pause between two polls"],
  ["support/movedClock.ts", "implements a running clock that tests move"],
  ["scripts/testRules.test.ts", "contains examples of violations"],
  ["cluster/long/faults.ts", "runs long faults by hand; not part of the suite"],
  ["cluster/long/failover.ts", "runs long faults by hand; not part of the suite"]
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
  [/\bAbortSignal\.timeout\(/, "a timeout by the machine's clock is a race"],
  [
    /\b(?:setDefault\w*Timeout\(|timeout: *)(?:1[6-9]|[2-9]\d|\d{3,})_?\d{3}\b/,
    "a wait ends after 15 s and says what was there instead (test/web/waits.ts, test/support/until.ts)"
  ]
]

/** Effects of a live test use the machine's clock. */
const live = /\bit\.live\b/
const sleep = /\bEffect\.(?:sleep|delay|timeout\w*)\(/

/** The title of a test: behind `it(`, or behind the rows of `it.each(`. */
const titles =
  /(?<![\w.])it(?:\.(?!each\b)\w+)*(?:\.each(?:(?!\b(?:it|describe)\b)[^])*?\))?\(\s*(["`])((?:\\.|(?!\1)[^\\\n])*)\1,\s*(?:async\b|\(|\{|Effect\b)/g

/** A place of a title that a row fills; the row has the words then. */
const filled = /%[a-z]|\$/

/** Titles that are no sentences, each at its line. */
const shortTitles = (file: string, text: string): Array<string> =>
  [...text.matchAll(titles)].flatMap(({ 2: title = "", index }) =>
    title.trim().split(/\s+/).length >= 3 || filled.test(title)
      ? []
      : [`test/${file}:${text.slice(0, index).split("\n").length}: "${title}" is no sentence: who does what, when`]
  )

/** The violations in the text of a test file, as `file:line: rule`. */
export const ruleViolations = (file: string, text: string): Array<string> => {
  if (exceptions.has(file)) return []
  const isLive = live.test(text)
  const lines = text.split("\n").flatMap((line, i) => [
    ...rules.filter(([pattern]) => pattern.test(line)).map(([, instead]) => `test/${file}:${i + 1}: ${instead}`),
    ...(isLive && sleep.test(line)
      ? [`test/${file}:${i + 1}: a live test does not sleep: it waits for what happens`]
      : [])
  ])
  return [...lines, ...shortTitles(file, text)]
}

/** The violations in all test files. */
export const testRuleViolations = (root: string): Array<string> => {
  const folder = path.join(root, "test")
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => file.replaceAll(path.sep, "/"))
    .filter((file) => /\.tsx?$/.test(file) && !file.startsWith("fixtures/"))
  if (files.length === 0) throw new Error(`no tests below ${folder}`)
  return files.toSorted().flatMap((file) => ruleViolations(file, readFileSync(path.join(folder, file), "utf8")))
}
