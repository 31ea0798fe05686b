/**
 * Says so where changes do not outlive the process.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { Admin } from "../state/client.ts"
import { useTexts } from "../state/preferences.ts"
import { useAtom } from "../state/registry.ts"

/** The configuration: keys, accounts in short, and where it comes from. */
export const configAtom = Admin.query("admin-config", "get", { reactivityKeys: ["config"] })

interface ShownKeys {
  readonly keys: ReadonlyArray<string>
  readonly generated_key?: string
}

const generated = new WeakMap<ShownKeys, ReadonlyArray<string>>()

/** The keys that callers may use: the configured ones, or the one of a start without keys. */
export const acceptedKeys = (config: ShownKeys): ReadonlyArray<string> => {
  if (config.generated_key === undefined) return config.keys
  const known = generated.get(config) ?? [config.generated_key]
  generated.set(config, known)
  return known
}

export const Durability = () => {
  const t = useTexts()
  const config = AsyncResult.value(useAtom(configAtom))
  return Option.isSome(config) && config.value.env_backed
    ? <p class="notice warn">{t.common.notLasting}</p>
    : null
}
