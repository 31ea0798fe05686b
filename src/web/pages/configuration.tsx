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

const useConfiguration = () => Option.getOrUndefined(AsyncResult.value(useAtom(configAtom)))

/**
 * The keys that the gateway accepts: the configured ones, or the generated one of a start without keys. `undefined` until
 * the configuration is loaded. The list stays the same object until the configuration changes.
 */
export const useAcceptedKeys = (): ReadonlyArray<string> | undefined => {
  const config = useConfiguration()
  return useMemo(() => config?.generated_key === undefined ? config?.keys : [config.generated_key], [config])
}

/** The key of a start without keys, while it is accepted. */
export const useGeneratedKey = (): string | undefined => useConfiguration()?.generated_key

/** Warns when changes are lost at the end of the process. */
export const DurabilityNotice = () => {
  const t = useTexts()
  return useConfiguration()?.env_backed === true ? <p class="notice warn">{t.common.notLasting}</p> : null
}
