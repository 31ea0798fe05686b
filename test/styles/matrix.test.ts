/**
 * A reply of the upstream in all four styles, streamed and not, through the vendors' SDKs. What may differ between the styles
 * stands in `sameReply`.
 */
import { assert, describe, it } from "@effect/vitest"
import { callForms } from "../../src/testing/provider/callForms.ts"
import { assertSame } from "../support/sameReply.ts"
import { type Counts, styleClients } from "../support/styleClients.ts"
import { oslo, reasoning, replies, text } from "./replies.ts"
import { base, tools, useGateway } from "./support.ts"

const clients = styleClients(base, { fetch: useGateway() })

describe("a reply is the same in every style, streamed and not", () => {
  for (const { ask, name, ...written } of replies) {
    it(`${name}`, () => assertSame(clients, ask, written))
  }

  it.each(Object.keys(callForms))("calls as models write them: %s", async (form) => {
    const content = `!call form=${form} get_weather {"city":"Oslo"}`
    await assertSame(clients, { content, tools }, { pieces: [oslo], finish: "tool_calls" })
  })
})

/** The counts that are told where the upstream gives these; what it leaves out is estimated. */
const counts: ReadonlyArray<readonly [form: string, usage: Partial<Counts>]> = [
  [`{"prompt_tokens":90,"completion_tokens":50,"reasoning_tokens":20}`, {
    prompt: 90,
    completion: 50,
    reasoning: 20,
    cached: 0
  }],
  ["both", { completion: 8, reasoning: 4 }],
  ["77", { completion: 77, reasoning: 4 }],
  ["none", { completion: 8, reasoning: 4 }]
]

describe("token counts are the same in every style, streamed and not", () => {
  it.each(counts)("!usage %s", async (form, usage) => {
    const content = `!usage ${form}\n!think Hm, yes.\n!say It is so.`
    const pieces = [reasoning("Hm, yes."), text("It is so.")]
    const told = await assertSame(clients, { content, reasoner: true }, { pieces, finish: "stop" })
    assert.deepInclude(told, usage)
  })
})
