/**
 * Tests of upstreams, and the lists of their servers. They take no slot, and nothing of a test is saved.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { AccountPool, LeasedCredential } from "../../accounts/Lease.ts"
import { type Account, keyless } from "../../config/Account.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { GatewayConfig, UpstreamConfig } from "../../config/GatewayConfig.ts"
import { classify } from "../../domain/classifyUpstreamFailure.ts"
import { plainContext } from "../../domain/failureRules.ts"
import { type GatewayError, operatorMessage } from "../../domain/GatewayError.ts"
import { listedName, type ServersModel } from "../../domain/routes.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { driverThrough } from "../../upstream/connection.ts"
import { missingModels } from "../../upstream/ServerFindings.ts"
import type { Driver, Login } from "../../upstream/Upstream.ts"
import { Upstreams } from "../../upstream/Upstreams.ts"

/** What a test shows to the upstream: a login, a key, or the token of a source; `undefined` for a server that needs none. */
export interface TestCredential {
  readonly login: Login | undefined
  readonly key: string | undefined
  /** Of an account whose token comes from a source. */
  readonly source?: Pick<LeasedCredential, "secrets" | "token">
  /** The proxy of the account, if it has one of its own. */
  readonly proxy?: Account["proxy"]
}

/** The result of a test. */
export interface UpstreamTest {
  readonly success: boolean
  readonly message: string
  /** Milliseconds. */
  readonly response_time: number
  /** The server's names of its models; `null` if it lists none. */
  readonly models: ReadonlyArray<string> | null
}

export const noCredential: TestCredential = { login: undefined, key: undefined }

/** What the first enabled account of an upstream shows. */
export const credentialOf = Effect.fnUntraced(function*(
  { accounts }: GatewayConfig,
  upstream: string,
  pool: Pick<AccountPool, "access">
): Effect.fn.Return<TestCredential, GatewayError> {
  const account = accounts.find((each) => each.upstream === upstream && !each.disabled)
  if (account === undefined) return noCredential
  const { email, mobile, password, proxy, token } = account
  if (account.credential !== undefined) {
    return { ...noCredential, source: (yield* pool.access(account.name)).credential, proxy }
  }
  const key = token === undefined || Redacted.value(token) === keyless ? undefined : Redacted.value(token)
  const login = password === undefined || (email ?? mobile) === undefined
    ? undefined
    : { email, mobile, password: Redacted.value(password) }
  return { login, key, proxy }
})

const secretsOf = ({ key, login, source }: TestCredential, { secrets }: Driver): ReadonlyArray<string> =>
  [key, login?.password, login?.email, login?.mobile, ...source?.secrets() ?? [], ...secrets.map(Redacted.value)]
    .filter((secret) => secret !== undefined && secret !== "") as ReadonlyArray<string>

const namesOf = (models: ReadonlyArray<ServersModel>): ReadonlyArray<string> => models.map(listedName)

const originOf = ({ base_url }: UpstreamConfig): string => URL.canParse(base_url) ? new URL(base_url).origin : base_url

/**
 * Whether requests of a draft end where those of the saved upstream do. Another proxy or other authorities let somebody else read what an
 * unchanged address gets.
 */
export const reachesSaved = (draft: UpstreamConfig, saved: UpstreamConfig): boolean =>
  originOf(draft) === originOf(saved) && Equal.equals(draft.proxy, saved.proxy) && draft.tls?.id === saved.tls?.id

export class UpstreamTests extends Context.Service<UpstreamTests, {
  /** Tests an upstream, which need not be configured. Never fails: an error is the message of the result. */
  readonly test: (upstream: UpstreamConfig, credential: TestCredential) => Effect.Effect<UpstreamTest>
  /** The server's names of its models, or why there is no list. */
  readonly list: (
    upstream: UpstreamConfig,
    credential: TestCredential
  ) => Effect.Effect<Result.Result<ReadonlyArray<string>, string>>
}>()("model-gateway/admin/UpstreamTests") {
  static readonly layer: Layer.Layer<UpstreamTests, never, ConfigStore | Upstreams> = Layer.effect(
    UpstreamTests,
    Effect.gen(function*() {
      const store = yield* ConfigStore
      const upstreams = yield* Upstreams

      const tokenOf = (driver: Driver, { key, login, source }: TestCredential) =>
        source !== undefined
          ? source.token
          : driver.capabilities.login !== undefined && login !== undefined && key === undefined
          ? driver.capabilities.login(login)
          : Effect.succeed(key)

      /** Uses an upstream within the time that a request has for its attempts; an error is the driver's message. */
      const using = <A>(
        upstream: UpstreamConfig,
        credential: TestCredential,
        use: (driver: Driver, token: string | undefined) => Effect.Effect<A, UpstreamFailure>
      ): Effect.Effect<Result.Result<A, string>> =>
        Effect.result(Effect.flatMap(upstreams.make(upstream), (ofUpstream) => {
          const driver = driverThrough(ofUpstream, credential.proxy)
          return Effect.flatMap(tokenOf(driver, credential), (token) => use(driver, token)).pipe(
            Effect.timeoutOrElse({
              duration: store.now().request_timeouts.attempts * 1000,
              orElse: () => Effect.fail(new UpstreamFailure({ phase: "session", kind: "timeout" }))
            }),
            Effect.mapError((failure) =>
              operatorMessage(
                classify(failure, { ...plainContext, secrets: secretsOf(credential, driver) }).error
              )
            )
          )
        }))

      return {
        test: Effect.fn("UpstreamTests.test")(function*(upstream, credential) {
          const clock = yield* Clock.Clock
          const began = monotonicMillis(clock)
          const outcome = yield* using(
            upstream,
            credential,
            ({ capabilities: { listModels }, ...driver }, token) =>
              Effect.andThen(
                driver.verify(token),
                listModels === undefined
                  ? Effect.succeed(null)
                  // A server without a list works all the same.
                  : Effect.orElseSucceed(Effect.map(listModels(token), namesOf), () => null)
              )
          )
          const lacking = missingModels(upstream, Result.isSuccess(outcome) ? outcome.success ?? [] : [])
          return {
            success: Result.isSuccess(outcome),
            message: Result.isSuccess(outcome)
              ? ["The upstream answers", ...lacking.map(({ message }) => message)].join("; ")
              : outcome.failure,
            response_time: Math.round(monotonicMillis(clock) - began),
            models: Result.isSuccess(outcome) ? outcome.success : null
          }
        }),
        list: (upstream, credential) =>
          Effect.map(
            using(
              upstream,
              credential,
              ({ capabilities: { listModels } }, token) =>
                listModels === undefined ? Effect.undefined : Effect.map(listModels(token), namesOf)
            ),
            Result.flatMap((names) =>
              names === undefined ? Result.fail("The upstream's server lists no models") : Result.succeed(names)
            )
          )
      }
    })
  )
}
