import { assert, it } from "@effect/vitest"
import { Cause, Effect, Logger, Redacted } from "effect"
import { jsonLine } from "../../src/server/loggers.ts"

const circular: Record<string, unknown> = { name: "itself" }
circular["own"] = circular

const annotations: ReadonlyArray<Record<string, unknown>> = [
  {},
  { style: "chat", status: 200, stream: true, nothing: null, missing: undefined, odd: Number.NaN },
  { account: "\"é\u0000\ud83d" },
  { cause: { kind: "refused" } },
  { token: Redacted.make("a-secret") },
  { big: 12n },
  { when: new Date(0), circular },
  { symbol: Symbol("s"), call: () => 1 }
]

it.effect("writes every line as the library's JSON logger does", () => {
  const lines: Array<readonly [string, string]> = []
  const both = Logger.make<unknown, void>((entry) => {
    lines.push([jsonLine.log(entry), Logger.formatJson.log(entry)])
  })
  return Effect.gen(function*() {
    for (const each of annotations) yield* Effect.annotateLogs(Effect.logInfo("request"), each)
    yield* Effect.logError("failed", Cause.die("a defect"))
    yield* Effect.withLogSpan(Effect.logInfo("two", { parts: true }), "span")
    yield* Effect.logInfo(12n)
    assert.lengthOf(lines, annotations.length + 3)
    for (const [line, expected] of lines) assert.strictEqual(line, expected)
  }).pipe(Effect.provide(Logger.layer([both])))
})
