/** Sources of credentials that tests script, and a pool whose accounts use them. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { RawConfig } from "../../src/config/json.ts"
import { CurrentFileReader, UnreadableFile } from "../../src/config/regularFile.ts"
import { bareToken } from "../../src/credentials/CredentialSource.ts"
import { CurrentPrograms } from "../../src/credentials/programs.ts"
import { CurrentTokenServers, type TokenRequest } from "../../src/credentials/tokenServers.ts"
import { UpstreamFailure } from "../../src/domain/UpstreamFailure.ts"
import type { Credential } from "../../src/upstream/Upstream.ts"
import { buildPool, makeDriver } from "../accounts/support.ts"

/** What stands behind a source: a file or a program's output, by its name. */
export interface Backing {
  /** The token that is given next; `undefined` where the source fails. */
  readonly tokens: Map<string, string | undefined>
  /** The tokens that were asked for, by the name of their source. */
  readonly asked: Array<string>
}

/** A source with its milliseconds of life; `undefined` for one whose tokens have no end. */
export interface ScriptedSource {
  readonly from: string
  readonly life: number | undefined
  readonly credential: (name: string) => RawConfig
  /** What operators read of it when it fails. */
  readonly failure: RegExp
}

export const file: ScriptedSource = {
  from: "file",
  life: undefined,
  credential: (name) => ({ from: "file", path: `/run/${name}` }),
  failure: /^its credential failed: file: the file cannot be read: missing \(\/run\/a: there is no such file\)$/
}

export const command: ScriptedSource = {
  from: "command",
  life: 600_000,
  credential: (name) => ({ from: "command", run: ["/bin/token", "--for", name], for: 600 }),
  failure: /^its credential failed: command: the program ended with 3$/
}

export const google: ScriptedSource = {
  from: "google",
  life: 3_600_000,
  credential: (name) => ({ from: "google", scope: name }),
  failure: /^its credential failed: google: the metadata server answered with HTTP 400 invalid_grant$/
}

export const entra: ScriptedSource = {
  from: "entra",
  life: 3_600_000,
  credential: (name) => ({ from: "entra", tenant: "t", client: name, secret: "canary-of-a-secret" }),
  failure: /^its credential failed: entra: the token server answered with HTTP 400 invalid_grant$/
}

/** The file of a web identity, which stands for each role. */
const identityFile = "/run/identity"

export const aws: ScriptedSource = {
  from: "aws",
  life: 3_600_000,
  credential: (name) => ({
    from: "aws",
    role: `arn:aws:iam::123456789012:role/${name}`,
    web_identity_file: identityFile
  }),
  failure: /^its credential failed: aws: the token service answered with HTTP 400 ExpiredTokenException$/
}

/** The name of a source in a question to its token server; `undefined` for a question that is not for a token. */
const namedIn = ({ body, url }: Pick<TokenRequest, "body" | "url">): string | undefined => {
  const form = new URLSearchParams(body)
  return new URL(url).searchParams.get("scopes") ?? form.get("client_id") ??
    form.get("RoleArn")?.replace(/^.*\//, "")
}

/** The answer of AWS's token service; a token is the id of the keys. */
const assumed = (token: string | undefined, now: number): string =>
  token === undefined
    ? "<ErrorResponse><Error><Code>ExpiredTokenException</Code></Error></ErrorResponse>"
    : `<AccessKeyId>${token}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>` +
      `<Expiration>${new Date(now + aws.life!).toISOString()}</Expiration>`

export const makeBacking = (): Backing => ({ tokens: new Map(), asked: [] })

/** Runs an effect whose files and programs are those of the test. */
export const withBacking = ({ asked, tokens }: Backing) => {
  const give = (name: string) =>
    Effect.map(Effect.yieldNow, () => {
      asked.push(name)
      return tokens.get(name)
    })
  return <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    effect.pipe(
      Effect.provideService(CurrentFileReader, (path) =>
        path === identityFile ?
          Effect.succeed(Buffer.from("a.web.identity")) :
          Effect.flatMap(give(path.replace("/run/", "")), (token) =>
            token === undefined
              ? Effect.fail(new UnreadableFile({ kind: "missing", message: `${path}: there is no such file` }))
              : Effect.succeed(Buffer.from(`${token}\n`)))),
      Effect.provideService(CurrentTokenServers, (request) => {
        const name = namedIn(request)
        if (name === undefined) {
          return Effect.succeed({ status: 404, date: undefined, text: "" })
        }
        const isAws = request.body.includes("RoleArn=")
        return Effect.clockWith((clock) =>
          Effect.map(give(name), (access_token) =>
            isAws
              ? {
                status: access_token === undefined ? 400 : 200,
                date: undefined,
                text: assumed(access_token, clock.currentTimeMillisUnsafe())
              }
              : access_token === undefined
              ? { status: 400, date: undefined, text: JSON.stringify({ error: "invalid_grant" }) }
              : { status: 200, date: undefined, text: JSON.stringify({ access_token, expires_in: 3_600 }) })
        )
      }),
      Effect.provideService(CurrentPrograms, (run) =>
        Effect.map(give(run.at(-1)!), (token) =>
          token === undefined ? { failed: "the program ended with 3" } : { output: `${token}\n` }))
    )
}

const refusal = new UpstreamFailure({ phase: "completion", kind: "refused", status: 401 })

/** The credential of a lease, whose tokens are without the header that drivers send them in, and keys by their ids alone. */
export const bare = (credential: Credential): Credential => {
  const sent = new Map<string | undefined, string>()
  const shown = (token: string | undefined) => {
    const [id] = (token === undefined ? "" : bareToken(token)).split(" ")
    if (token !== undefined) sent.set(id, token)
    return token && id
  }
  return {
    get token() {
      return Effect.map(credential.token, shown)
    },
    renew: (stale) => Effect.map(credential.renew(sent.get(stale) ?? stale), shown)
  }
}

/** A pool of accounts with these credentials; the upstream accepts every token but those of `refused`. */
export const poolOf = (
  backing: Backing,
  credentials: ReadonlyArray<Schema.Json>,
  refused: ReadonlySet<string> = new Set()
) => {
  const made = makeDriver({
    name: "openai",
    verify: (token) => refused.has(bareToken(token ?? "").split(" ")[0]!) ? Effect.fail(refusal) : Effect.void
  }, { login: undefined, sessions: undefined })
  return withBacking(backing)(
    buildPool({
      upstream: {
        driver: "openai",
        models: { m: "m" },
        ...(JSON.stringify(credentials).includes("\"from\":\"aws\"")
          ? { vendor: "bedrock", region: "eu-central-1" }
          : { base_url: "http://127.0.0.1:9/v1" })
      },
      accounts: credentials.map((credential) => ({ credential })),
      runtime: { account_max_inflight: 2 }
    }, () => made.driver)
  )
}

/** Runs an effect by a clock whose wall time is so many milliseconds ahead of the test's clock, as after a computer's sleep. */
export const withWallAhead = (ahead: () => number) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.clockWith((clock) =>
    Effect.provideService(effect, Clock.Clock, {
      ...clock,
      sleep: (duration) => clock.sleep(duration),
      currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + ahead(),
      currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe() + ahead()),
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe()
    })
  )
