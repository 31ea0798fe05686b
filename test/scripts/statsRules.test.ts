/** The rule that no decision reads the stats of a request. */
import { assert, describe, it } from "@effect/vitest"
import { statsReads } from "../../scripts/statsRules.ts"

describe("the stats of a request", () => {
  it("are read by no module that is not named", () => {
    const reads = [
      "if (stats.attempts > 0) go()",
      "const { attempts } = request.stats",
      "go(this.request.stats.usage?.promptTokens)",
      "const goes = ({ attempts }: RequestStats) => attempts > 0",
      "const goes = ({ attempts }: Pick<RequestStats, \"attempts\">) => attempts > 0"
    ]
    for (const text of reads) {
      const [found, ...more] = statsReads("completion/attempts.ts", `\n${text}\n`)
      assert.match(found ?? "", /^src\/completion\/attempts\.ts:2: /, text)
      assert.lengthOf(more, 0, text)
      assert.lengthOf(statsReads("server/observability/requestLog.ts", text), 0)
    }
  })

  it("are written anywhere", () => {
    const writes = [
      "stats.attempts = 1",
      "stats.attempts++",
      "request.stats.queued += 5",
      "stats.error ??= \"timeout\"",
      "const stream = stats.stream = true",
      "const { id, stats } = request",
      "note(stats, path)"
    ]
    for (const text of writes) assert.lengthOf(statsReads("completion/attempts.ts", text), 0, text)
  })
})
