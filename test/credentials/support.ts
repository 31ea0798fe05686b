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

/** The name of a source in a question to its token server; `undefined` for a question that is not for a token. */
const namedIn = ({ body, url }: Pick<TokenRequest, "body" | "url">): string | undefined =>
  new URL(url).searchParams.get("scopes") ?? new URLSearchParams(body).get("client_id") ?? undefined

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
        Effect.flatMap(give(path.replace("/run/", "")), (token) =>
          token === undefined
            ? Effect.fail(new UnreadableFile({ kind: "missing", message: `${path}: there is no such file` }))
            : Effect.succeed(Buffer.from(`${token}\n`)))),
      Effect.provideService(CurrentTokenServers, (request) => {
        const name = namedIn(request)
        if (name === undefined) {
          return Effect.succeed({ status: 404, date: undefined, text: "" })
        }
        return Effect.map(give(name), (access_token) =>
          access_token === undefined
            ? { status: 400, date: undefined, text: JSON.stringify({ error: "invalid_grant" }) }
            : { status: 200, date: undefined, text: JSON.stringify({ access_token, expires_in: 3_600 }) })
      }),
      Effect.provideService(CurrentPrograms, (run) =>
        Effect.map(give(run.at(-1)!), (token) =>
          token === undefined ? { failed: "the program ended with 3" } : { output: `${token}\n` }))
    )
}

const refusal = new UpstreamFailure({ phase: "completion", kind: "refused", status: 401 })

/** The credential of a lease, whose tokens are without the header that drivers send them in. */
export const bare = (credential: Credential): Credential => ({
  get token() {
    return Effect.map(credential.token, (token) => token && bareToken(token))
  },
  renew: (stale) => Effect.map(credential.renew(stale), (token) => token && bareToken(token))
})

/** A pool of accounts with these credentials; the upstream accepts every token but those of `refused`. */
export const poolOf = (
  backing: Backing,
  credentials: ReadonlyArray<Schema.Json>,
  refused: ReadonlySet<string> = new Set()
) => {
  const made = makeDriver({
    name: "openai",
    verify: (token) => refused.has(bareToken(token ?? "")) ? Effect.fail(refusal) : Effect.void
  }, { login: undefined, sessions: undefined })
  return withBacking(backing)(
    buildPool({
      upstream: { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { m: "m" } },
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
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe()
    })
  )
