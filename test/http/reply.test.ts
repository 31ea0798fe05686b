/** Replies and bodies by the endpoint: what does not fit its contract does not compile. */
import { assert, describe, it } from "@effect/vitest"
import { payloadReader } from "../../src/http/jsonBody.ts"
import { respond } from "../../src/http/reply.ts"
import { GenerateGroup } from "../../src/styles/generate/Api.ts"
import { ModelsGroup } from "../../src/styles/models/Api.ts"

const { countTokens, streamGenerateContent } = GenerateGroup.endpoints

describe("an endpoint's reply", () => {
  it("is its body as JSON", () => {
    const { body, headers, status } = respond(countTokens, { totalTokens: 7 })
    assert.deepEqual([status, headers["content-type"]], [200, "application/json"])
    assert.strictEqual(body._tag === "Uint8Array" && new TextDecoder().decode(body.body), `{"totalTokens":7}`)
  })

  it("is held to the endpoint's success by the compiler", () => {
    // @ts-expect-error A field of another type.
    respond(countTokens, { totalTokens: "7" })
    // @ts-expect-error A field that is left out.
    respond(countTokens, {})
    // @ts-expect-error A field that there is not.
    respond(countTokens, { totalTokens: 7, tokens: 7 })
    // @ts-expect-error An endpoint that only streams has no body.
    respond(streamGenerateContent, {})
  })
})

describe("a reader of an endpoint's body", () => {
  it("is made of endpoints that have one", () => {
    assert.throws(() => payloadReader(ModelsGroup.endpoints.list), /list/)
  })
})
