/** The source `aws` against a token service and metadata servers on a socket, which check what they get as AWS's documents say it. */
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { vi } from "vitest"
import { awsTokens } from "../../src/credentials/aws.ts"
import { failureText, type TokenMaker } from "../../src/credentials/CredentialSource.ts"
import { CurrentTokenServers } from "../../src/credentials/tokenServers.ts"
import { keysOfToken, tokenOfKeys } from "../../src/domain/ownLogin.ts"
import { role, secrets, startTokenServer, type TokenServer } from "./tokenServer.ts"

let server: TokenServer
let folder: string
beforeAll(async () => {
  server = await startTokenServer()
})
afterAll(() => server.stop())
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "aws-"))
  server.skew = 0
  server.seen.length = 0
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) vi.stubEnv(name, undefined)
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", path.join(folder, "credentials"))
  vi.stubEnv("AWS_CONFIG_FILE", path.join(folder, "config"))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

const put = (name: string, content: string): string => {
  const file = path.join(folder, name)
  writeFileSync(file, content)
  return file
}

/** Issues keys, with the servers of AWS at the test's server. */
const issue = ({ issue }: TokenMaker) =>
  Effect.provideService(issue, CurrentTokenServers, (request) =>
    CurrentTokenServers.defaultValue()({
      ...request,
      url: request.url.replace(/^http:\/\/169\.254\.\d+\.\d+/, server.url)
    }))

const keysBy = (maker: TokenMaker) => Effect.map(issue(maker), ({ token }) => keysOfToken(tokenOfKeys(token))!)
const failure = (maker: TokenMaker) => Effect.map(Effect.flip(issue(maker)), failureText)

/** An access key, with the test's token service. */
const own = () =>
  ({ from: "aws", key: secrets.key, secret: secrets.signing, region: "eu-central-1", sts: server.url }) as const
const ownKeys = { id: secrets.key, secret: secrets.signing, session: undefined }

describe("keys of AWS", () => {
  it.live("come from the configuration and have no end", () =>
    Effect.gen(function*() {
      const maker = awsTokens(own())
      assert.deepStrictEqual(yield* keysBy(maker), ownKeys)
      assert.isUndefined((yield* issue(maker)).lives)
      assert.deepStrictEqual([maker.identity(), maker.isOfNode], ["an access key", true])
      assert.deepStrictEqual(server.seen, [])
    }))

  it.live("come from the environment", () =>
    Effect.gen(function*() {
      vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIA1")
      vi.stubEnv("AWS_SECRET_ACCESS_KEY", "s")
      vi.stubEnv("AWS_SESSION_TOKEN", "t")
      const maker = awsTokens({ from: "aws" })
      assert.deepStrictEqual(yield* keysBy(maker), { id: "AKIA1", secret: "s", session: "t" })
      assert.strictEqual(maker.identity(), "the environment")
    }))

  it.live("come from a profile, which is read again at each issue", () =>
    Effect.gen(function*() {
      put("config", "[profile work]\nregion = eu-central-1\n")
      const keys = (id: string) =>
        `[default]\naws_access_key_id = no\n[work]\naws_access_key_id = ${id}\naws_secret_access_key=s\n`
      put("credentials", keys("AKIA1"))
      const maker = awsTokens({ from: "aws", profile: "work" })
      assert.strictEqual((yield* keysBy(maker)).id, "AKIA1")
      put("credentials", keys("AKIA2"))
      assert.strictEqual((yield* keysBy(maker)).id, "AKIA2")
      assert.strictEqual(maker.identity(), "the profile work")
      const absent = yield* failure(awsTokens({ from: "aws", profile: "absent" }))
      assert.match(absent, /^aws: the profile has no keys \(absent in .*credentials or .*config\)$/)
      vi.stubEnv("AWS_PROFILE", "work")
      assert.strictEqual((yield* keysBy(awsTokens({ from: "aws" }))).id, "AKIA2")
    }))

  it.live("come from the container, by the token of its server", () =>
    Effect.gen(function*() {
      vi.stubEnv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/container/keys")
      vi.stubEnv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", put("token", `${secrets.client}\n`))
      const maker = awsTokens({ from: "aws" })
      assert.match((yield* keysBy(maker)).session ?? "", /^session-token-/)
      const { lives = 0 } = yield* issue(maker)
      assert.isTrue(lives > 21_590_000 && lives <= 21_601_000)
      put("token", "other")
      assert.strictEqual(yield* failure(maker), "aws: the container's server answered with HTTP 403")
    }))

  it.live.each(["http://host.example/keys", "http://169.254.170.2.host.example/keys", "no address"])(
    "are asked of no container's server at %s",
    (address) =>
      Effect.gen(function*() {
        vi.stubEnv("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)
        const said = yield* failure(awsTokens({ from: "aws" }))
        assert.strictEqual(said, "aws: the address of the container's server is outside of the container")
        assert.deepStrictEqual(server.seen, [])
      })
  )

  it.live("come from the machine, by the second version of its server", () =>
    Effect.gen(function*() {
      const maker = awsTokens({ from: "aws" })
      assert.match((yield* keysBy(maker)).session ?? "", /^session-token-/)
      assert.strictEqual(maker.identity(), "the machine's role gateway-role")
      assert.deepStrictEqual(server.seen.map((seen) => seen.path), [
        "/latest/api/token",
        "/latest/meta-data/iam/security-credentials/",
        "/latest/meta-data/iam/security-credentials/gateway-role"
      ])
    }))
})

describe("a role", () => {
  it.live("is assumed by keys, under the name of its session", () =>
    Effect.gen(function*() {
      const maker = awsTokens({ ...own(), role, external_id: "ours" })
      const { lives = 0 } = yield* issue(maker)
      // The answer's time has whole seconds.
      assert.isTrue(lives > 3_590_000 && lives <= 3_601_000)
      assert.strictEqual(maker.identity(), "arn:aws:sts::123456789012:assumed-role/gateway/model-gateway")
      assert.isFalse(maker.isOfNode)
      const named = awsTokens({ ...own(), role, session: "team-a" })
      assert.match((yield* keysBy(named)).id, /^ASIA\d+$/)
      assert.strictEqual(named.identity(), "arn:aws:sts::123456789012:assumed-role/gateway/team-a")
    }))

  it.live("is refused with the service's code, which no secret is part of", () =>
    Effect.gen(function*() {
      const cases = [
        [{ ...own(), role: `${role}-other` }, "AccessDenied"],
        [{ ...own(), role, external_id: "theirs" }, "AccessDenied"],
        [{ ...own(), role, secret: "canary" }, "SignatureDoesNotMatch"],
        [{ ...own(), role, key: "UNKNOWN" }, "UnrecognizedClientException"]
      ] as const
      for (const [settings, code] of cases) {
        const said = yield* failure(awsTokens(settings))
        assert.strictEqual(said, `aws: the token service answered with HTTP 403 ${code}`)
      }
    }))

  it.live("is assumed by a web identity, of the settings or of the environment", () =>
    Effect.gen(function*() {
      const file = put("identity", `${secrets.subject}\n`)
      const settings = { from: "aws", region: "eu-central-1", sts: server.url } as const
      const maker = awsTokens({ ...settings, web_identity_file: file, role })
      assert.match((yield* keysBy(maker)).session ?? "", /^session-token-/)
      assert.isUndefined(server.seen.at(-1)?.headers.authorization)
      vi.stubEnv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
      vi.stubEnv("AWS_ROLE_ARN", role)
      vi.stubEnv("AWS_ROLE_SESSION_NAME", "pod-1")
      const pod = awsTokens(settings)
      yield* issue(pod)
      assert.strictEqual(pod.identity(), "arn:aws:sts::123456789012:assumed-role/gateway/pod-1")
      // The pod's role assumes another one.
      yield* issue(awsTokens({ ...settings, role }))
      assert.deepStrictEqual(server.seen.slice(-2).map(({ form }) => form.get("Action")), [
        "AssumeRoleWithWebIdentity",
        "AssumeRole"
      ])
      put("identity", "other.token")
      assert.strictEqual(yield* failure(pod), "aws: the token service answered with HTTP 400 InvalidIdentityToken")
    }))

  it.live.each([-600_000, 600_000])(
    "is assumed by the clock of the service, which is %s ms ahead",
    (skew) =>
      Effect.gen(function*() {
        server.skew = skew
        const { lives = 0 } = yield* issue(awsTokens({ ...own(), role }))
        assert.isTrue(lives > 3_590_000 && lives <= 3_601_000)
        assert.lengthOf(server.seen, 2)
        server.seen.length = 0
        const said = yield* failure(awsTokens({ ...own(), role, secret: "wrong" }))
        assert.match(
          said,
          /^aws: the token service answered with HTTP 403 SignatureDoesNotMatch; this computer's clock is /
        )
        assert.lengthOf(server.seen, 2)
      })
  )
})
