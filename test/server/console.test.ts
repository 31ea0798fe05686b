import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { type IncomingHttpHeaders, request as httpRequest } from "node:http"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { Lifecycle } from "../../src/server/Lifecycle.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"

let gateway: RunningGateway
let without: RunningGateway

beforeAll(async () => {
  gateway = await startGateway()
  without = await startGateway({ console: { enabled: false } })
})
afterAll(() => Promise.all([gateway.stop(), without.stop()]))

interface Got {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** The raw response: redirects are not followed, and nothing is decompressed. */
const ask = (url: string, headers: Record<string, string> = {}, method = "GET"): Promise<Got> =>
  new Promise((resolve, reject) => {
    httpRequest(url, { method, headers }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      response.on(
        "end",
        () => resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) })
      )
      response.on("error", reject)
    }).on("error", reject).end()
  })

const policy = "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'"

const assets = async (): Promise<Array<string>> => {
  const { body } = await ask(`${gateway.url}/console/`)
  return [...body.toString().matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name!)
}

describe("the console's routes", () => {
  it("redirect the address without a slash to the page, by a relative address", async () => {
    const { headers, status } = await ask(`${gateway.url}/console`)
    assert.strictEqual(status, 308)
    assert.strictEqual(headers.location, "console/")
  })

  it("serve the page for revalidation and its assets as immutable", async () => {
    const page = await ask(`${gateway.url}/console/`)
    assert.strictEqual(page.status, 200)
    assert.strictEqual(page.headers["content-type"], "text/html; charset=utf-8")
    assert.strictEqual(page.headers["cache-control"], "no-cache")
    const names = await assets()
    assert.isAbove(names.length, 2)
    for (const name of names) {
      const { headers, status } = await ask(`${gateway.url}/console/${name}`)
      assert.strictEqual(status, 200, name)
      assert.strictEqual(headers["cache-control"], "public, max-age=31536000, immutable")
      assert.match(headers["content-type"]!, /^(?:text\/javascript|text\/css|image\/svg\+xml)/)
    }
  })

  it("return 304 for a current copy of the page in the same encoding", async () => {
    for (const encoding of ["br", "gzip", "identity"]) {
      const first = await ask(`${gateway.url}/console/`, { "accept-encoding": encoding })
      const again = await ask(`${gateway.url}/console/`, {
        "accept-encoding": encoding,
        "if-none-match": `"other", W/${first.headers.etag!}`
      })
      assert.strictEqual(again.status, 304)
      assert.strictEqual(again.body.length, 0)
      assert.strictEqual(again.headers.etag, first.headers.etag)
    }
    const etags = await Promise.all(
      ["br", "gzip", "identity"].map(async (encoding) =>
        (await ask(`${gateway.url}/console/`, { "accept-encoding": encoding })).headers.etag
      )
    )
    assert.strictEqual(new Set(etags).size, 3)
  })

  it("choose a compression that the browser accepts", async () => {
    const plain = await ask(`${gateway.url}/console/`)
    assert.strictEqual(plain.headers["content-encoding"], undefined)
    for (
      const [accepted, encoding, unpack] of [
        ["gzip, deflate, br", "br", brotliDecompressSync],
        ["br;q=0, gzip", "gzip", gunzipSync],
        ["gzip;q=0.5", "gzip", gunzipSync],
        ["*", "br", brotliDecompressSync],
        ["br;q=0, gzip;q=0", undefined, (bytes: Buffer) => bytes],
        ["deflate", undefined, (bytes: Buffer) => bytes]
      ] as const
    ) {
      const { body, headers } = await ask(`${gateway.url}/console/`, { "accept-encoding": accepted })
      assert.strictEqual(headers["content-encoding"], encoding, accepted)
      assert.strictEqual(headers.vary, "Accept-Encoding")
      assert.deepStrictEqual(unpack(body), plain.body)
    }
  })

  it("answer HEAD as GET, without the body", async () => {
    const { body } = await ask(`${gateway.url}/console/`)
    const head = await ask(`${gateway.url}/console/`, {}, "HEAD")
    assert.strictEqual(head.status, 200)
    assert.strictEqual(head.body.length, 0)
    assert.strictEqual(head.headers["content-length"], String(body.length))
  })

  it("set the content security policy on every reply", async () => {
    const [asset] = await assets()
    for (
      const [path, method, status] of [
        ["/console", "GET", 308],
        ["/console/", "GET", 200],
        ["/console/", "HEAD", 200],
        [`/console/${asset!}`, "GET", 200],
        ["/console/assets/none.js", "GET", 404],
        ["/console/index.html", "GET", 404],
        ["/console/accounts", "GET", 404],
        ["/console/assets/", "GET", 404],
        ["/console/assets/..%2f..%2fpackage.json", "GET", 404],
        ["/console/", "POST", 405],
        ["/console", "DELETE", 405]
      ] as const
    ) {
      const reply = await ask(`${gateway.url}${path}`, {}, method)
      assert.strictEqual(reply.status, status, `${method} ${path}`)
      assert.strictEqual(reply.headers["content-security-policy"], policy)
      assert.strictEqual(reply.headers["referrer-policy"], "no-referrer")
      assert.strictEqual(reply.headers["x-content-type-options"], "nosniff")
      if (status === 405) assert.strictEqual(reply.headers.allow, "GET, HEAD")
    }
  })

  it("set the content security policy on errors outside of their routes too", async () => {
    const site = await startGateway()
    const refusals = [
      await ask(`${site.url}/console/${"x".repeat(5_000)}`),
      await ask(`${site.url}/console/%E0%A4%A`),
      await ask(`${site.url}/console/`, {}, "PROPFIND")
    ]
    await Effect.runPromise(Context.get(site.services, Lifecycle).drain)
    refusals.push(await ask(`${site.url}/console/`))
    assert.strictEqual(refusals.at(-1)!.status, 503)
    for (const { headers, status } of refusals) {
      assert.isAtLeast(status, 400)
      assert.strictEqual(headers["content-security-policy"], policy)
      assert.strictEqual(headers["referrer-policy"], "no-referrer")
    }
    await site.stop()
  })

  it("disappear when the console is disabled, and return without a restart", async () => {
    for (const path of ["/console", "/console/", "/console/assets/x.js", "/admin/session"]) {
      assert.strictEqual((await ask(`${without.url}${path}`)).status, 404, path)
    }
    const restored = await fetch(`${without.url}/admin/config/import?mode=merge`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminKey}` },
      body: JSON.stringify({ console: { enabled: true } })
    })
    assert.strictEqual(restored.status, 200)
  })
})
