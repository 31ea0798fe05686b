/**
 * Parts of the configuration that several pages use: the accepted keys, and the notice that changes are lost.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useMemo } from "preact/hooks"
import { readOf } from "../state/reads.ts"
import { useAtom } from "../state/registry.ts"
import { useTexts } from "../state/texts.ts"

const configAtom = readOf("admin-config", "get", { query: { accounts: "false" }, reactivityKeys: ["config"] })

/** A key that is kept as a hash cannot be presented. */
const isText = (key: string): boolean => !key.startsWith("sha256:")

const useConfiguration = () => Option.getOrUndefined(AsyncResult.value(useAtom(configAtom)))

/** The configured keys that are kept as texts; `undefined` until the configuration is loaded. The list stays the same until it changes. */
export const useTextKeys = (): ReadonlyArray<string> | undefined => {
  const config = useConfiguration()
  return useMemo(() => config?.keys.filter(isText), [config])
}

/**
 * The keys that the gateway accepts: the configured ones, or the generated one of a start without keys. `undefined` until
 * the configuration is loaded. The list stays the same object until the configuration changes.
 */
export const useAcceptedKeys = (): ReadonlyArray<string> | undefined => {
  const [configured, generated] = [useTextKeys(), useGeneratedKey()]
  return useMemo(() => generated === undefined ? configured : [generated], [configured, generated])
}

/** The key of a start without keys, while it is accepted. */
export const useGeneratedKey = (): string | undefined => useConfiguration()?.generated_key

/** Warns when changes are refused, or lost at the end of the process. */
export const DurabilityNotice = () => {
  const t = useTexts().common
  const { config_path = "", env_backed = false, locked = false } = useConfiguration() ?? {}
  if (!locked && !env_backed) return null
  return <p class="notice warn">{locked ? t.locked(env_backed ? "GATEWAY_CONFIG_JSON" : config_path) : t.notLasting}</p>
}
