/** The compiler checks responses and bodies against the contract of their endpoint. */
import { assert, describe, it } from "@effect/vitest"
import { payloadReader } from "../../src/http/jsonBody.ts"
import { respond } from "../../src/http/reply.ts"
import { GenerateGroup } from "../../src/styles/generate/Api.ts"
import { ModelsGroup } from "../../src/styles/models/Api.ts"

const { countTokens, streamGenerateContent } = GenerateGroup.endpoints

describe("an endpoint's response", () => {
  it("is its body as JSON text", () => {
    const { body, headers, status } = respond(countTokens, { totalTokens: 7 })
    assert.deepEqual([status, headers["content-type"]], [200, "application/json"])
    assert.strictEqual(body._tag === "Uint8Array" && new TextDecoder().decode(body.body), `{"totalTokens":7}`)
  })

  it("is checked against the endpoint by the compiler", () => {
    // @ts-expect-error A field has the wrong type.
    respond(countTokens, { totalTokens: "7" })
    // @ts-expect-error A field is missing.
    respond(countTokens, {})
    // @ts-expect-error A field is unknown.
    respond(countTokens, { totalTokens: 7, tokens: 7 })
    // @ts-expect-error An endpoint that only streams has no body.
    respond(streamGenerateContent, {})
  })
})

describe("a reader of an endpoint's body", () => {
  it("requires an endpoint with exactly one kind of body", () => {
    assert.throws(() => payloadReader(ModelsGroup.endpoints.list), /list/)
  })
})
