/**
 * What counts in one process alone, and is therefore refused where nodes share a store: each node would permit as much as all of them may
 * use together.
 */
import * as Effect from "effect/Effect"
import { placeOfUpstream } from "../domain/upstreamNames.ts"
import { ConfigInvalid, fault } from "./ConfigError.ts"
import type { DecodedConfig } from "./decodeConfig.ts"

const reason = "counts in one process alone, so nodes that share a store have no budgets"

/** Fails for a configuration of nodes that share a store which has a budget of an account or an upstream. */
export const refuseUnshared = <D extends Pick<DecodedConfig, "snapshot">>(
  decoded: D,
  source?: string
): Effect.Effect<D, ConfigInvalid> => {
  const { accounts, upstreams } = decoded.snapshot.config
  const faults = [
    ...accounts.flatMap(({ budgets }, i) => budgets === undefined ? [] : [fault(`accounts[${i}].budgets`, reason)]),
    ...Array.from(upstreams).flatMap(([name, { budgets = [] }]) =>
      budgets.length === 0 ? [] : [fault(`${placeOfUpstream(name)}.budgets`, reason)]
    )
  ]
  return faults.length === 0 ? Effect.succeed(decoded) : Effect.fail(ConfigInvalid.of(faults, source))
}
