/**
 * The configuration as several pages use it: its keys, and whether changes of it last.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useMemo } from "preact/hooks"
import { Admin } from "../state/client.ts"
import { useTexts } from "../state/preferences.ts"
import { useAtom } from "../state/registry.ts"

const configAtom = Admin.query("admin-config", "get", { reactivityKeys: ["config"] })

const useConfiguration = () => Option.getOrUndefined(AsyncResult.value(useAtom(configAtom)))

/**
 * The keys that the gateway accepts: the configured ones, or the generated one of a start without keys. The same list while the
 * configuration is the same; `undefined` until it is loaded.
 */
export const useAcceptedKeys = (): ReadonlyArray<string> | undefined => {
  const config = useConfiguration()
  return useMemo(() => config?.generated_key === undefined ? config?.keys : [config.generated_key], [config])
}

/** Warns when changes are lost at the end of the process. */
export const DurabilityNotice = () => {
  const t = useTexts()
  return useConfiguration()?.env_backed === true ? <p class="notice warn">{t.common.notLasting}</p> : null
}
