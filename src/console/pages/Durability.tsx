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

export const Durability = () => {
  const t = useTexts()
  const config = AsyncResult.value(useAtom(configAtom))
  return Option.isSome(config) && config.value.env_backed
    ? <p class="notice warn">{t.common.notLasting}</p>
    : null
}
