/**
 * Parts of the configuration that several pages use: the accepted keys, and the notice that changes are lost.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import { useMemo } from "preact/hooks"
import type { ConfigurationState } from "../parts/configuration.tsx"
import type { Reply } from "../state/client.ts"
import { readOf } from "../state/reads.ts"
import { useAtom } from "../state/registry.ts"
import { useTexts } from "../state/texts.ts"

const unread = Atom.make(AsyncResult.initial<Reply<"admin-config", "get">>())

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

const useLock = (asks: boolean): string | undefined => {
  const t = useTexts().common
  const config = Option.getOrUndefined(
    AsyncResult.value<Reply<"admin-config", "get">, unknown>(useAtom(asks ? configAtom : unread))
  )
  if (config?.locked !== true) return undefined
  return t.locked(config.env_backed ? "GATEWAY_CONFIG_JSON" : config.config_path)
}

const Notice = () => {
  const t = useTexts().common
  const text = useLock(true) ?? (useConfiguration()?.env_backed === true ? t.notLasting : undefined)
  return text === undefined ? null : <p class="notice warn">{text}</p>
}

/** What parts know of the configuration. */
export const configuration: ConfigurationState = { useLock, Notice }
