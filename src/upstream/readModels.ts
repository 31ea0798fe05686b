/**
 * Reads which models the upstream's server lists, so that its own names mean its own models.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { Upstream } from "./Upstream.ts"

const interval = "10 minutes"

/** The longest that the start waits for the first list. */
const longestWait = "2 seconds"

/** Accounts whose tokens are tried for one list. */
const mostTokens = 3

const tokensOf = ({ accounts }: GatewayConfig): ReadonlyArray<string | undefined> => {
  const tokens = accounts.filter((account) => !account.disabled && account.token !== undefined)
    .slice(0, mostTokens).map(({ token }) => Redacted.value(token!))
  return tokens.length === 0 ? [undefined] : tokens
}

/**
 * Reads the list at start, after a change of the upstream or of the accounts, and every ten minutes. The start waits for the first
 * read, so that the first requests find the server's models; later reads run in the background. A failed read keeps the last list. An
 * upstream without lists is not asked.
 */
export const startReadingModels = Effect.gen(function*() {
  const config = yield* ConfigStore
  const upstream = yield* Upstream
  const first = yield* Deferred.make<void>()
  const reads = (current: GatewayConfig) =>
    Stream.unwrap(Effect.map(upstream.driver, ({ listModels }) => {
      if (listModels === undefined) return Stream.fromEffect(Deferred.succeed(first, undefined))
      const read = Effect.firstSuccessOf(tokensOf(current).map((token) => listModels(token))).pipe(
        Effect.flatMap((names) => config.setListedModels(current.upstream, names)),
        Effect.catch((failure) => Effect.logDebug("The server's list of models could not be read", failure.message)),
        Effect.andThen(Deferred.succeed(first, undefined))
      )
      return Stream.fromEffectSchedule(read, Schedule.spaced(interval))
    }))
  yield* config.changes.pipe(
    Stream.changesWith((one, other) => one.upstream === other.upstream && one.account_table === other.account_table),
    Stream.switchMap(reads),
    Stream.runDrain,
    Effect.forkScoped
  )
  yield* Effect.timeoutOption(Deferred.await(first), longestWait)
})

/** The reading as a part of the gateway's services. */
export const layerReadModels = Layer.effectDiscard(startReadingModels)
