/**
 * Reads which models the upstream's server lists, so that its own names mean its own models.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { Upstream } from "./Upstream.ts"

const interval = "10 minutes"

/** Accounts whose tokens are tried for one list. */
const mostTokens = 3

const tokensOf = ({ accounts }: GatewayConfig): ReadonlyArray<string | undefined> => {
  const tokens = accounts.filter((account) => !account.disabled && account.token !== undefined)
    .slice(0, mostTokens).map(({ token }) => Redacted.value(token!))
  return tokens.length === 0 ? [undefined] : tokens
}

/**
 * Reads the list at start, after a change of the upstream or of the accounts, and every ten minutes, in the background. Requests
 * do not wait for it. A failed read keeps the last list. An upstream without lists is not asked.
 */
export const startReadingModels = Effect.gen(function*() {
  const config = yield* ConfigStore
  const upstream = yield* Upstream
  const reads = (current: GatewayConfig) =>
    Stream.unwrap(Effect.map(upstream.driver, ({ listModels }) => {
      if (listModels === undefined) return Stream.empty
      const read = Effect.firstSuccessOf(tokensOf(current).map((token) => listModels(token))).pipe(
        Effect.flatMap((names) => config.setListedModels(current.upstream, names)),
        Effect.catch((failure) => Effect.logDebug("The server's list of models could not be read", failure.message))
      )
      return Stream.fromEffectSchedule(read, Schedule.spaced(interval))
    }))
  yield* config.changes.pipe(
    Stream.changesWith((one, other) => one.upstream === other.upstream && one.account_table === other.account_table),
    Stream.switchMap(reads),
    Stream.runDrain,
    Effect.forkScoped
  )
})

/** The reading as a part of the gateway's services. */
export const layerReadModels = Layer.effectDiscard(startReadingModels)
