/**
 * Whatever history a client of any contract brings, what leaves for a server is one that the server's contract accepts, or nothing leaves and the
 * client gets a 400. Earlier turns have the same bytes in every later request.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { runs, seed } from "../../support/effort.ts"
import { styleNames } from "../../support/styleClients.ts"
import { rules } from "./contracts.ts"
import { drivers, histories, startAsking, type Step, written } from "./histories.ts"

const turnsField = { chat: "messages", responses: "input", messages: "messages", generate: "contents" } as const

/** The turns of a body but the last one, which the next turn may continue. */
const earlier = (
  body: { readonly [field: string]: unknown },
  server: keyof typeof turnsField
): ReadonlyArray<string> => {
  const turns = body[turnsField[server]]
  return Array.isArray(turns) ? turns.slice(0, -1).map((turn) => JSON.stringify(turn)) : []
}

const go: Step = { by: "user", text: "Go" }
const next: ReadonlyArray<Step> = [{ by: "assistant", text: "Well.", calls: ["n1"] }, {
  by: "tool",
  id: "n1",
  text: "a"
}, go]

describe.each(styleNames)("before a server of the contract %s", (server) => {
  it.effect.each(styleNames)(
    "a history of the style %s leaves as the contract accepts it, the same in each turn",
    (style) =>
      Effect.flatMap(startAsking(drivers[server]), (ask) =>
        Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(histories, fc.boolean(), async (steps, stream) => {
              const first = await ask(style, written[style]([...steps, go]), stream)
              const second = await ask(style, written[style]([...steps, go, ...next]), stream)
              const bare = await ask(style, written[style](steps), stream)
              for (const { received, status, text } of [first, second, bare]) {
                if (received.length === 0) assert.strictEqual(status, 400, text)
                for (const body of received) rules[server](body)
              }
              assert.deepStrictEqual([first.status, second.status], [200, 200], first.text)
              const before = earlier(first.received[0]!, server)
              assert.deepStrictEqual(earlier(second.received[0]!, server).slice(0, before.length), before)
            }),
            { numRuns: runs(80), seed }
          )
        ))
  )
})
