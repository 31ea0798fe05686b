/**
 * What becomes of each field of the vendor's reply types. A field that the SDK has and that is neither read nor left out must reach a
 * caller of the generate style, whole and streamed.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import {
  chunk,
  type GenerateServer,
  startGenerateServer,
  streamed,
  usageMetadata
} from "../../support/generateServer.ts"
import { sdkType } from "../../support/sdkTypes.ts"
import { parseFrames } from "../../support/sse.ts"

const genai = "@google/genai/dist/genai.d.ts"

let server: GenerateServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startGenerateServer()
  gateway = await startGateway({ upstream: { driver: "generate", base_url: server.baseUrl } })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

type Place = "chunk" | "candidate" | "usage" | "part"

/** Fields that the gateway reads, or that no server sends. */
const types: ReadonlyArray<readonly [name: string, place: Place, read: ReadonlyArray<string>]> = [
  [
    "GenerateContentResponse",
    "chunk",
    [
      "candidates",
      "modelVersion",
      "usageMetadata",
      // Made by the SDK.
      "sdkHttpResponse",
      "automaticFunctionCallingHistory",
      "text",
      "data",
      "functionCalls",
      "executableCode",
      "codeExecutionResult"
    ]
  ],
  ["Candidate", "candidate", ["content", "finishReason", "index"]],
  ["GenerateContentResponseUsageMetadata", "usage", []],
  ["Part", "part", ["text", "thought", "functionCall", "functionResponse"]]
]

const said = { said: ["by the server", 1] }

const replyWith = (place: Place, fields: object) =>
  streamed(
    chunk(
      [
        { text: "Hello" },
        ...(place === "part" ? Object.entries(fields).map(([name, value]) => ({ [name]: value })) : [])
      ],
      { finishReason: "STOP", ...(place === "candidate" ? fields : {}) },
      {
        usageMetadata: { ...usageMetadata, ...(place === "usage" ? fields : {}) },
        ...(place === "chunk" ? fields : {})
      }
    )
  )

const post = async (call: string) => {
  const response = await fetch(`${gateway.url}/v1beta/models/upstream-chat:${call}`, {
    method: "POST",
    headers: { "x-goog-api-key": businessKey, "content-type": "application/json" },
    body: JSON.stringify({ contents: [{ role: "user", parts: [{ text: "Hi" }] }] })
  })
  return response.text()
}

interface Chunk {
  readonly candidates: ReadonlyArray<{ readonly content: { readonly parts: ReadonlyArray<object> } }>
  readonly usageMetadata?: object
}

const fieldsOf = (place: Place, chunks: ReadonlyArray<Chunk>): object => {
  const all = chunks.map((chunk) =>
    place === "chunk"
      ? chunk
      : place === "usage"
      ? chunk.usageMetadata ?? {}
      : place === "candidate"
      ? chunk.candidates[0] ?? {}
      : Object.assign({}, ...chunk.candidates.flatMap(({ content }) => content.parts))
  )
  return Object.assign({}, ...all)
}

describe("every field of", () => {
  it.each(types)("%s reaches a caller of the generate style", async (name, place, read) => {
    const kept = [...sdkType(genai, name).fields.keys()].filter((field) => !read.includes(field))
    assert.isNotEmpty(kept)
    const fields = Object.fromEntries(kept.map((field) => [field, said]))
    server.answer(() => replyWith(place, fields))
    const whole: Chunk = JSON.parse(await post("generateContent"))
    const frames = parseFrames(await post("streamGenerateContent?alt=sse")).map(({ data }): Chunk => JSON.parse(data))
    assert.deepInclude(fieldsOf(place, [whole]), fields)
    assert.deepInclude(fieldsOf(place, frames), fields)
  })
})
