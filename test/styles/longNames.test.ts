/** An error names what it is about, and repeats no more of it than a person reads. */
import { assert, describe, it } from "@effect/vitest"
import { businessKey } from "../support/gateway.ts"
import { base, useGateway } from "./support.ts"

const fetch = useGateway()

const long = "n".repeat(50_000)
const chat = { model: "gpt-5", messages: [{ role: "user", content: "Hi" }] }
const declared = { functionDeclarations: [{ name: "f" }] }
const onlyLong = { functionCallingConfig: { mode: "ANY", allowedFunctionNames: [long] } }

const cases: ReadonlyArray<readonly [what: string, path: string, body: object, said: string]> = [
  ["a key of a map", "/v1/chat/completions", { ...chat, logit_bias: { [long]: "x" } }, `logit_bias.${"n".repeat(80)}…`],
  ["a key of metadata", "/v1/responses", { model: "gpt-5", input: "Hi", metadata: { [long]: 5 } }, "metadata.nnn"],
  ["a forced function", "/v1/chat/completions", {
    ...chat,
    tool_choice: { type: "function", function: { name: long } }
  }, "tool_choice names"],
  ["a tool that has to be used", "/v1/messages", { ...chat, tool_choice: { type: "tool", name: long } }, "tool_choice"],
  ["the one function that is allowed", "/v1beta/models/gemini-2.5-pro:generateContent", {
    contents: "Hi",
    tools: [declared],
    toolConfig: onlyLong
  }, "toolConfig.functionCallingConfig.allowedFunctionNames[0]"]
]

describe("an error about a long name", () => {
  it.each(cases)("%s", async (_, path, body, said) => {
    const response = await fetch(`${base}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify(body)
    })
    assert.strictEqual(response.status, 400)
    const text = await response.text()
    assert.include(text, said)
    assert.isBelow(text.length, 1000)
  })
})
