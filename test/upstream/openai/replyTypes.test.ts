/**
 * What becomes of each field of the vendor's reply types: read by the gateway, kept for the caller, or left out for a reason. A field
 * that the SDK has and that is neither read nor left out must reach a caller of the same contract, whole and streamed.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { type RunningGateway, startGateway } from "../../support/gateway.ts"
import { chunk, frames, json, type OpenAiServer, startOpenAiServer, usage } from "../../support/openaiServer.ts"
import { literalsOf, sdkType, variantsOf } from "../../support/sdkTypes.ts"
import { at, post, values } from "./extraReplies.ts"

const chat = "openai/resources/chat/completions/completions.d.ts"
const responses = "openai/resources/responses/responses.d.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({ upstream: { driver: "openai", base_url: server.baseUrl } })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const request = { model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] }

type Place = "chunk" | "choice" | "message" | "usage"

/** Fields that the gateway reads, or leaves out for a reason. */
interface Fates {
  readonly read: ReadonlyArray<string>
  readonly never?: { readonly [field: string]: string }
}

const ofChunk: Fates = {
  read: ["id", "object", "created", "model", "choices", "usage"],
  never: { obfuscation: "Hides the length of the server's chunks, which the gateway cuts anew." }
}
const ofChoice: Fates = { read: ["index", "delta", "message", "finish_reason"] }
const ofMessage: Fates = { read: ["role", "content", "tool_calls", "function_call"] }

const types: ReadonlyArray<readonly [file: string, name: string, place: Place, fates: Fates]> = [
  [chat, "ChatCompletion", "chunk", ofChunk],
  [chat, "ChatCompletionChunk", "chunk", ofChunk],
  [chat, "ChatCompletion.Choice", "choice", ofChoice],
  [chat, "ChatCompletionChunk.Choice", "choice", ofChoice],
  [chat, "ChatCompletionMessage", "message", ofMessage],
  [chat, "ChatCompletionChunk.Choice.Delta", "message", ofMessage],
  ["openai/resources/completions.d.ts", "CompletionUsage", "usage", {
    read: ["prompt_tokens", "completion_tokens", "total_tokens"]
  }]
]

const token = { token: "Hi", bytes: [72, 105], logprob: -1, top_logprobs: [] }

/** Values of the fields that are not any JSON to the gateway. */
const samples: { readonly [field: string]: unknown } = {
  annotations: [{
    type: "url_citation",
    url_citation: { start_index: 0, end_index: 1, title: "A", url: "http://a.example" }
  }],
  audio: { id: "a", data: "AAAA", expires_at: 9, transcript: "Hi" },
  logprobs: { content: [token], refusal: [token] },
  prompt_tokens_details: { audio_tokens: 2, cache_write_tokens: 3, cached_tokens: 1 },
  completion_tokens_details: {
    accepted_prediction_tokens: 2,
    rejected_prediction_tokens: 4,
    audio_tokens: 1,
    reasoning_tokens: 1
  }
}

const placed = (place: Place, fields: object, key: "delta" | "message") => {
  const content = { role: "assistant", content: "Hello", ...(place === "message" ? fields : {}) }
  return {
    ...chunk({}),
    choices: [{ index: 0, [key]: content, finish_reason: "stop", ...(place === "choice" ? fields : {}) }],
    usage: { ...usage, ...(place === "usage" ? fields : {}) },
    ...(place === "chunk" ? fields : {})
  }
}

const pathOf = (place: Place, key: "delta" | "message"): ReadonlyArray<string | number> =>
  ({ chunk: [], choice: ["choices", 0], message: ["choices", 0, key], usage: ["usage"] })[place]

describe.each(types)("%s: %s", (file, name, place, { never = {}, read }) => {
  const names = [...sdkType(file, name).fields.keys()]
  const kept = names.filter((field) => !read.includes(field) && !Object.hasOwn(never, field))
  const fields = Object.fromEntries(kept.map((field) => [field, samples[field] ?? `kept ${field}`]))
  const answers = {
    "a stream": () => ({ pieces: [frames(placed(place, fields, "delta"), "[DONE]")] }),
    "one object": () => json(200, placed(place, fields, "message"))
  }

  it.each(Object.entries(answers))("keeps the fields that it does not read, of %s", async (_, answer) => {
    assert.isAbove(names.length, 0)
    server.answer(answer)
    const whole = await post(gateway.url, "/v1/chat/completions", request)
    assert.deepInclude(at(whole, ...pathOf(place, "message")), fields)
    server.answer(answer)
    const streamed = values(
      await post(gateway.url, "/v1/chat/completions", {
        ...request,
        stream: true,
        stream_options: { include_usage: true }
      })
    )
    for (const [field, value] of Object.entries(fields)) {
      const found = streamed.map((each) => at(each, ...pathOf(place, "delta"), field)).filter((each) => each !== null)
      assert.deepStrictEqual(found.find((each) => each !== undefined), value, field)
    }
  })
})

const servers = "The gateway runs none of the vendor's tools."
const own = "Belongs to the vendor's own servers."

describe("a Responses reply", () => {
  it("has every field of the vendor's response, or none for a reason", async () => {
    const never: { readonly [field: string]: string } = {
      conversation: "The gateway stores no conversations.",
      image: servers,
      moderation: "Nothing is moderated.",
      prompt: "The gateway stores no prompts.",
      prompt_cache_diagnostics: own,
      prompt_cache_options: own,
      prompt_cache_retention: own,
      tool_usage: servers,
      user: "Says of the caller what the request says."
    }
    server.answer(() => json(200, placed("chunk", {}, "message")))
    const reply = await post(gateway.url, "/v1/responses", { model: "upstream-chat", input: "Hi" })
    const fields = [...sdkType(responses, "Response").fields.keys()]
    const missing = fields.filter((field) => at(reply, field) === undefined)
    assert.deepStrictEqual(missing.toSorted(), Object.keys(never).toSorted())
  })

  /** The types in golden frames and in the sources that write frames. */
  const written = (folder: string): string =>
    readdirSync(path.join(import.meta.dirname, "../../..", folder))
      .filter((name) => /\.(?:ts|txt)$/.test(name))
      .map((name) => readFileSync(path.join(import.meta.dirname, "../../..", folder, name), "utf8"))
      .join("\n")
  const rendered = written("src/contracts/responses")

  const literals = (name: string): ReadonlyArray<string> => {
    const union = { file: responses, scope: [], node: aliasOf(name) }
    return variantsOf(union).shapes.flatMap((shape) => {
      const type = shape.fields.get("type")
      return type === undefined ? [] : literalsOf(type)
    })
  }
  const aliasOf = (name: string) =>
    ({ type: "TSTypeReference", typeName: { type: "Identifier", name } }) as unknown as Parameters<
      typeof variantsOf
    >[0]["node"]

  it("has every item of the vendor's output, or none for a reason", () => {
    const never: ReadonlyArray<readonly [RegExp, string]> = [
      [/^(?:file_search|web_search|code_interpreter|mcp)_/, servers],
      [/_output$/, "The caller runs the tool."],
      [/^(?:mcp_.*|program|compaction|additional_tools)$/, own]
    ]
    const types = literals("ResponseOutputItem")
    assert.isAbove(types.length, 20)
    assert.deepStrictEqual(
      types.filter((type) => !never.some(([kind]) => kind.test(type)) && !rendered.includes(`"${type}"`)),
      []
    )
  })

  it("has every event of the vendor's streams, or none for a reason", () => {
    const never: ReadonlyArray<readonly [RegExp, string]> = [
      [/^response\.(?:file_search|web_search|code_interpreter|mcp)_/, servers],
      [/^response\.image_generation_call\.partial_image$/, "Pictures come whole."],
      [/^response\.shell_call_output_content\./, "The caller runs the shell."],
      [/^response\.audio\./, "Spoken text is a message."],
      [/^response\.reasoning_text\./, "Reasoning is a summary, which the caller may read."],
      [/^response\.(?:queued|compaction\..*)$/, own],
      [/^error$/, "A stream that fails ends with response.failed."]
    ]
    const types = literals("ResponseStreamEvent")
    assert.isAbove(types.length, 50)
    const isRendered = (type: string) =>
      [type, type.replace(/\.(?:added|delta|done)$/, ""), type.replace(/\w+$/, "${status}")].some((part) =>
        rendered.includes(`"${part}"`) || rendered.includes(`\`${part}\``)
      )
    assert.deepStrictEqual(types.filter((type) => !never.some(([kind]) => kind.test(type)) && !isRendered(type)), [])
  })
})

describe("parts of a reply that are neither text nor pictures", () => {
  const part = { type: "output_hologram", data: "AAAA" }
  const picture = { type: "image_url", image_url: "data:image/png;base64,AAAA" }

  it("reach the caller, and are a reply without text", async () => {
    for (const form of ["delta", "message"] as const) {
      const reply = {
        ...chunk({}),
        choices: [{ index: 0, [form]: { content: [part, picture] }, finish_reason: "stop" }]
      }
      server.answer(() => form === "delta" ? { pieces: [frames(reply, "[DONE]")] } : json(200, reply))
      const whole = await post(gateway.url, "/v1/chat/completions", request)
      assert.deepInclude(at(whole, "choices", 0, "message"), { content: "", content_parts: [part], images: [picture] })
      const streamed = values(await post(gateway.url, "/v1/chat/completions", { ...request, stream: true }))
      const deltas = streamed.map((each) => at(each, "choices", 0, "delta"))
      assert.deepInclude(deltas.find((delta) => at(delta, "images") !== undefined), {
        content_parts: [part],
        images: [picture]
      })
    }
  })
})

describe("log probabilities in the Responses style", () => {
  const tokens = [
    { token: "He", logprob: -0.5, bytes: null, top_logprobs: [{ token: "Ha", logprob: -2, bytes: null }] },
    { token: "llo", logprob: -0.25, bytes: [108, 108, 111], top_logprobs: [] }
  ]
  const expected = [
    { token: "He", bytes: [72, 101], logprob: -0.5, top_logprobs: [{ token: "Ha", bytes: [72, 97], logprob: -2 }] },
    { token: "llo", bytes: [108, 108, 111], logprob: -0.25, top_logprobs: [] }
  ]
  const piece = (content: string, index: number) => ({
    ...chunk({}),
    choices: [{ index: 0, delta: { content }, logprobs: { content: [tokens[index]] }, finish_reason: null }]
  })
  const ask = { model: "upstream-chat", input: "Hi", include: ["message.output_text.logprobs"], top_logprobs: 2 }

  it("are asked of the server and stand in the text's place", async () => {
    server.answer(() => ({ pieces: [frames(piece("He", 0), piece("llo", 1), chunk({}, "stop"), "[DONE]")] }))
    const whole = await post(gateway.url, "/v1/responses", ask)
    assert.deepInclude(server.requests.at(-1)?.body, { logprobs: true, top_logprobs: 2 })
    assert.deepStrictEqual(at(whole, "output", 0, "content", 0, "logprobs"), expected)
    assert.strictEqual(at(whole, "top_logprobs"), 2)

    const events = values(await post(gateway.url, "/v1/responses", { ...ask, stream: true }))
    const of = (type: string) => events.filter((event) => at(event, "type") === type)
    assert.deepStrictEqual(of("response.output_text.delta").flatMap((event) => at(event, "logprobs")), expected)
    assert.deepStrictEqual(at(of("response.output_text.done")[0], "logprobs"), expected)
    assert.deepStrictEqual(at(of("response.content_part.done")[0], "part", "logprobs"), expected)
    const [final] = of("response.completed")
    assert.deepStrictEqual(at(final, "response", "output", 0, "content", 0, "logprobs"), expected)
  })
})
