/** The sources `google` and `entra` against a token server on a socket, which checks what it gets as its vendor does. */
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { failureText, type TokenMaker } from "../../src/credentials/CredentialSource.ts"
import { entraTokens } from "../../src/credentials/entra.ts"
import { googleTokens } from "../../src/credentials/google.ts"
import { CurrentTokenServers } from "../../src/credentials/tokenServers.ts"
import { rsaCertificate } from "../support/certificates.ts"
import { certificate, privateKey, secrets, startTokenServer, type TokenServer } from "./tokenServer.ts"

let server: TokenServer
let folder: string
beforeAll(async () => {
  server = await startTokenServer()
})
afterAll(() => server.stop())
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "vendors-"))
  server.skew = 0
  server.seen.length = 0
})
const appService = ["IDENTITY_ENDPOINT", "IDENTITY_HEADER"]
const variables = appService.map((name) => process.env[name])
const setVariables = (values: ReadonlyArray<string | undefined>) => {
  for (const [i, name] of appService.entries()) {
    if (values[i] === undefined) delete process.env[name]
    else process.env[name] = values[i]
  }
}
beforeEach(() => setVariables([]))
afterEach(() => {
  setVariables(variables)
  rmSync(folder, { recursive: true })
})

const put = (content: unknown): string => {
  const file = path.join(folder, "credential.json")
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content))
  return file
}

const serviceAccount = (rest: object = {}) => ({
  type: "service_account",
  client_email: "gateway@project.iam.gserviceaccount.com",
  private_key: privateKey,
  private_key_id: "key-1",
  token_uri: `${server.url}/google`,
  ...rest
})

/** Issues a token, with the metadata servers of clouds at the test's server. */
const issue = ({ issue }: TokenMaker) =>
  Effect.provideService(issue, CurrentTokenServers, (request) =>
    CurrentTokenServers.defaultValue()({
      ...request,
      url: request.url.replace(/^http:\/\/(?:metadata\.google\.internal|169\.254\.169\.254)/, server.url)
    }))

const failure = (maker: TokenMaker) => Effect.map(Effect.flip(issue(maker)), failureText)

describe("google", () => {
  it.live("signs in with the file of a service account", () =>
    Effect.gen(function*() {
      const maker = googleTokens({ from: "google", file: put(serviceAccount()) })
      const issued = yield* issue(maker)
      assert.match(issued.token, /^service-token-\d+$/)
      assert.strictEqual(issued.lives, 3_599_000)
      assert.strictEqual(maker.identity(), "gateway@project.iam.gserviceaccount.com")
    }))

  it.live("says that the key is refused, and tells a wrong clock from it", () =>
    Effect.gen(function*() {
      const wrong = googleTokens({ from: "google", file: put(serviceAccount({ private_key_id: "key-2" })) })
      assert.strictEqual(yield* failure(wrong), "google: the token server answered with HTTP 400 invalid_grant")
      const right = googleTokens({ from: "google", file: put(serviceAccount()) })
      server.skew = -7_200_000
      assert.match(
        yield* failure(right),
        /^google: the token server answered with HTTP 400 invalid_grant; this computer's clock is 7\d\d\d seconds ahead of the server's$/
      )
      server.skew = 7_200_000
      assert.match(yield* failure(right), /clock is 7\d\d\d seconds behind the server's$/)
    }))

  it.live("signs in with the file of a user", () =>
    Effect.gen(function*() {
      const user = {
        type: "authorized_user",
        client_id: "client-1",
        client_secret: secrets.client,
        refresh_token: secrets.refresh,
        token_uri: `${server.url}/google`
      }
      const maker = googleTokens({ from: "google", file: put(user) })
      assert.match((yield* issue(maker)).token, /^user-token-\d+$/)
      assert.strictEqual(maker.identity(), "client-1")
      const revoked = googleTokens({ from: "google", file: put({ ...user, refresh_token: "revoked" }) })
      assert.strictEqual(yield* failure(revoked), "google: the token server answered with HTTP 400 invalid_grant")
    }))

  it.live("exchanges the token of a workload, and that for a service account's", () =>
    Effect.gen(function*() {
      const subject = path.join(folder, "subject")
      writeFileSync(subject, `${secrets.subject}\n`)
      const external = {
        type: "external_account",
        audience: "//iam/pool",
        subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
        token_url: `${server.url}/google`,
        credential_source: { file: subject }
      }
      const plain = googleTokens({ from: "google", file: put(external) })
      assert.match((yield* issue(plain)).token, /^federated-token-\d+$/)
      const asAccount = googleTokens({
        from: "google",
        file: put({
          ...external,
          service_account_impersonation_url: `${server.url}/account:generateAccessToken`,
          credential_source: {
            url: `${server.url}/subject`,
            headers: { "x-own": "yes" },
            format: { type: "json", subject_token_field_name: "token" }
          }
        })
      })
      const { lives = 0, token } = yield* issue(asAccount)
      assert.strictEqual(token, "impersonated-token")
      // The answer's time has whole seconds.
      assert.isTrue(lives > 1_798_000 && lives <= 1_801_000)
    }))

  it.live("asks the metadata server without a file", () =>
    Effect.gen(function*() {
      const maker = googleTokens({ from: "google" })
      assert.strictEqual(maker.identity(), "the metadata server")
      assert.match((yield* issue(maker)).token, /^machine-token-\d+$/)
      assert.strictEqual(maker.identity(), "machine@project.iam.gserviceaccount.com")
    }))

  it.live("sends no secret to an address without TLS", () =>
    Effect.gen(function*() {
      const file = put(serviceAccount({ token_uri: "http://token.example/google" }))
      assert.strictEqual(
        yield* failure(googleTokens({ from: "google", file })),
        "google: the file names an address without TLS"
      )
      assert.deepStrictEqual(server.seen, [])
    }))

  it.live.each([["{}"], ["no JSON, canary"], [JSON.stringify({ type: "service_account", canary: 1 })]])(
    "refuses the file %s without a quotation",
    ([text]) =>
      Effect.gen(function*() {
        const said = yield* failure(googleTokens({ from: "google", file: put(text) }))
        assert.match(
          said,
          /^google: the file is of no service account, user or external account \(.*credential\.json\)$/
        )
        assert.notInclude(said, "canary")
      })
  )
})

describe("entra", () => {
  const client = { from: "entra", tenant: "tenant-1", client: "client-1" } as const

  it.live("signs in with a client's secret", () =>
    Effect.gen(function*() {
      const maker = entraTokens({ ...client, secret: secrets.client, authority: server.url })
      assert.match((yield* issue(maker)).token, /^client-token-\d+$/)
      assert.strictEqual(maker.identity(), "client-1")
      const wrong = entraTokens({ ...client, secret: "canary", authority: server.url })
      assert.strictEqual(yield* failure(wrong), "entra: the token server answered with HTTP 401 invalid_client")
    }))

  it.live("signs in with a federated token, which is read at each issue", () =>
    Effect.gen(function*() {
      const file = put("another.token")
      const maker = entraTokens({ ...client, federated_file: file, authority: server.url })
      assert.strictEqual(yield* failure(maker), "entra: the token server answered with HTTP 401 invalid_client")
      put(secrets.subject)
      assert.match((yield* issue(maker)).token, /^client-token-\d+$/)
    }))

  it.live("signs in with a client's certificate, which its assertion names", () =>
    Effect.gen(function*() {
      const maker = entraTokens({
        ...client,
        certificate_file: put(`${certificate.key}${certificate.cert}`),
        authority: server.url
      })
      assert.match((yield* issue(maker)).token, /^client-token-\d+$/)
      const { cert, key } = rsaCertificate()
      put(`${key}${cert}`)
      assert.strictEqual(yield* failure(maker), "entra: the token server answered with HTTP 401 invalid_client")
      for (const pem of [certificate.cert, certificate.key, "canary"]) {
        put(pem)
        assert.strictEqual(yield* failure(maker), "entra: the file has no certificate with its private key")
      }
    }))

  it.live("asks for the managed identity of a machine, and shows its object id", () =>
    Effect.gen(function*() {
      const maker = entraTokens({ from: "entra" })
      assert.strictEqual((yield* issue(maker)).lives, 86_399_000)
      assert.strictEqual(maker.identity(), "object-1")
    }))

  it.live("asks for the managed identity that a client names", () =>
    Effect.gen(function*() {
      const maker = entraTokens({ from: "entra", client: "client-2" })
      assert.strictEqual(maker.identity(), "client-2")
      yield* issue(maker)
      assert.strictEqual(maker.identity(), "object-2")
      const unknown = entraTokens({ from: "entra", client: "client-3" })
      assert.strictEqual(
        yield* failure(unknown),
        "entra: the identity server answered with HTTP 400 invalid_request"
      )
    }))

  it.live.each([{ named: {}, oid: "object-1" }, { named: { client: "client-2" }, oid: "object-2" }])(
    "asks App Service for its managed identity: $oid",
    ({ named, oid }) =>
      Effect.gen(function*() {
        process.env["IDENTITY_ENDPOINT"] = `${server.url}/msi/token`
        process.env["IDENTITY_HEADER"] = secrets.client
        const maker = entraTokens({ from: "entra", ...named })
        const { lives = 0 } = yield* issue(maker)
        // The end is in whole seconds.
        assert.isTrue(lives > 86_398_000 && lives <= 86_400_000)
        assert.strictEqual(maker.identity(), oid)
        assert.deepStrictEqual(server.seen.map(({ path }) => path.split("?")[0]), ["/msi/token"])
        process.env["IDENTITY_HEADER"] = "canary"
        assert.strictEqual(yield* failure(maker), "entra: the identity server answered with HTTP 401")
      })
  )

  it.live("says that a server cannot be reached", () =>
    Effect.gen(function*() {
      const maker = entraTokens({ ...client, secret: "canary", authority: "http://127.0.0.1:1" })
      assert.strictEqual(yield* failure(maker), "entra: the token server cannot be reached")
    }))
})
