import { assert, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { businessKey } from "../../support/gateway.ts"
import { base, useGateway } from "../support.ts"

const client = new OpenAI({ apiKey: businessKey, baseURL: `${base}/v1`, maxRetries: 0, fetch: useGateway() })

const textsOf = async (id: string, order: "asc" | "desc") => {
  const texts: Array<string> = []
  // One more than there are is one too many.
  for await (const item of client.responses.inputItems.list(id, { limit: 1, order })) {
    if (item.type === "message" && texts.length < 9) {
      texts.push(item.content.map((part) => "text" in part ? part.text : "").join())
    } else break
  }
  return texts
}

describe("a response's input items", () => {
  it("are read page by page, even where several were sent under one id", async () => {
    const message = (content: string) => ({ type: "message", id: "msg_own", role: "user", content }) as const
    const { id } = await client.responses.create({ model: "gpt-5", input: [message("1"), message("2"), message("3")] })
    assert.deepStrictEqual(await textsOf(id, "asc"), ["1", "2", "3"])
    assert.deepStrictEqual(await textsOf(id, "desc"), ["3", "2", "1"])
  })

  it("hold both what an assistant's message says and what it refuses", async () => {
    const body = {
      model: "gpt-5",
      messages: [{ role: "assistant", content: "Well.", refusal: "No." }, { role: "user", content: "Hi" }]
    }
    const { id } = await client.post<{ id: string }>("/responses", { body })
    const { data } = await client.responses.inputItems.list(id, { order: "asc" })
    const first = data[0] !== undefined && "content" in data[0] ? data[0].content : undefined
    assert.deepStrictEqual<unknown>(first, [
      { type: "output_text", text: "Well." },
      { type: "refusal", refusal: "No." }
    ])
  })
})
