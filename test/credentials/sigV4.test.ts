/** Signatures of requests, by the vectors that AWS has published, and by a check that has no code in common with what signs. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as FastCheck from "fast-check"
import { readFileSync } from "node:fs"
import { signatureOf, type SignedRequest } from "../../src/credentials/sigV4.ts"
import { refusalOf } from "../../src/testing/clouds/signature.ts"
import { pageText } from "../support/snippets.ts"

interface Vectors {
  readonly service: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly tests: ReadonlyArray<{
    readonly name: string
    readonly method: string
    readonly uri: string
    readonly headers: ReadonlyArray<readonly [string, string]>
    readonly body: string
    readonly authz: string
  }>
}

const vectors = JSON.parse(
  readFileSync(new URL("../fixtures/sigV4.json", import.meta.url), "utf8")
) as Vectors

const signingDate = Date.UTC(2015, 7, 30, 12, 36)

/** The headers of a vector with one value for each name, in which lines and repeated headers are joined by commas. */
const headersOf = (headers: Vectors["tests"][number]["headers"]): Readonly<Record<string, string>> => {
  const joined: Record<string, string> = {}
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const text = value.split("\n").map((line) => line.trim()).join(",")
    joined[key] = Object.hasOwn(joined, key) ? `${joined[key]},${text}` : text
  }
  return joined
}

describe("a signature of Signature Version 4", () => {
  it("is tested by as many vectors as the page says", () =>
    assert.include(pageText("docs/guides/credentials.md"), `${vectors.tests.length} of the 31 vectors`))

  it.effect.each(vectors.tests)(
    "is the one that AWS has published: $name",
    ({ authz, body, headers, method, uri }) =>
      Effect.gen(function*() {
        // The published signatures are without the length, which is of the connection.
        const { "content-length": _, host, "x-amz-date": __, "x-amz-security-token": session, ...rest } = headersOf(
          headers
        )
        const signed = yield* signatureOf(
          { method, url: `https://${host}${uri}`, headers: rest, body },
          { id: vectors.accessKeyId, secret: vectors.secretAccessKey, session },
          vectors,
          signingDate
        )
        assert.strictEqual(signed["authorization"], authz)
      })
  )

  const scope = { service: "bedrock", region: "eu-central-1" }
  const keys = { id: "AKIDEXAMPLE", secret: "secret", session: "session" }
  const url = "https://host.example/model/arn%3Aaws%3Abedrock%3Aeu%3A1%3Aprofile%2Fa/invoke"
  const request: SignedRequest = {
    method: "POST",
    url,
    headers: { "content-type": "application/json" },
    body: "{\"ä\":\"🙂\"}"
  }
  const now = Date.UTC(2026, 10, 30)

  const check = Effect.fnUntraced(function*(
    change: (signed: { path: string; headers: Record<string, string>; bytes: Uint8Array }) => void,
    checks: object = {}
  ) {
    const signature = yield* signatureOf(request, keys, scope, now)
    const { host, pathname } = new URL(url)
    const arrived = {
      method: "POST",
      path: pathname,
      headers: { host, ...request.headers, ...signature },
      bytes: Buffer.from(String(request.body))
    }
    change(arrived)
    const known = new Map([[keys.id, { secret: keys.secret, session: keys.session, isExpired: false }]])
    return refusalOf(arrived, { ...scope, keys: known, now, ...checks })
  })

  it.effect("is of the bytes, the path and the headers that leave", () =>
    Effect.gen(function*() {
      assert.isUndefined(yield* check(() => undefined))
      const wrong = [
        yield* check((arrived) => void (arrived.bytes = Buffer.from("{}"))),
        yield* check((arrived) => void (arrived.path = arrived.path.replace("%2F", "/"))),
        yield* check((arrived) => void (arrived.headers["content-type"] = "text/plain")),
        yield* check((arrived) => void (arrived.headers["x-amz-other"] = "1"))
      ]
      for (const refusal of wrong) assert.include(refusal?.message, "does not match the signature")
    }))

  it.effect("is of a time, a region, a service and a session", () =>
    Effect.gen(function*() {
      const code = (refusal: { readonly code: string } | undefined) => refusal?.code
      assert.strictEqual(code(yield* check(() => undefined, { now: now + 301_000 })), "InvalidSignatureException")
      assert.strictEqual(code(yield* check(() => undefined, { now: now - 301_000 })), "InvalidSignatureException")
      assert.strictEqual(code(yield* check(() => undefined, { region: "us-east-1" })), "InvalidSignatureException")
      assert.strictEqual(code(yield* check(() => undefined, { service: "sts" })), "InvalidSignatureException")
      assert.strictEqual(
        code(yield* check((arrived) => void (arrived.headers["x-amz-security-token"] = "other"))),
        "UnrecognizedClientException"
      )
    }))

  it.effect("is right for any name of a model and any body", () =>
    Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(
          FastCheck.string({ minLength: 1, unit: "grapheme" }),
          FastCheck.string({ unit: "grapheme" }),
          async (model, body) => {
            const url = `https://host.example/model/${encodeURIComponent(model)}/invoke`
            const sent = { ...request, url, body }
            const signature = await Effect.runPromise(signatureOf(sent, keys, scope, now))
            const arrived = {
              method: "POST",
              path: new URL(url).pathname,
              headers: { host: "host.example", ...request.headers, ...signature },
              bytes: Buffer.from(body)
            }
            const known = new Map([[keys.id, { secret: keys.secret, session: keys.session, isExpired: false }]])
            assert.isUndefined(refusalOf(arrived, { ...scope, keys: known, now }))
          }
        ),
        { numRuns: 100 }
      )
    ))
})
