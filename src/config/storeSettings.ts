/**
 * How this node connects to the shared store: from the environment, else from the `store` group of its own configuration,
 * which is never shared.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { createHmac } from "node:crypto"
import type { StoreOptions } from "../cluster/store/Store.ts"
import { leastKeyLength, nodeName, StoreInvalid } from "../cluster/store/StoreShape.ts"
import { ConfigInvalid, fault, faultsOf } from "./ConfigError.ts"
import { makeConfigFile } from "./ConfigFile.ts"
import type { EnvironmentShape } from "./Environment.ts"
import { parseConfig, type RawConfig } from "./json.ts"
import { namesVariable } from "./referenceNames.ts"
import { StoreGroup } from "./schema.ts"
import { parseVariable } from "./sources.ts"

/** The store address of a configuration; `undefined` if unset. Fails if the group is invalid. */
export const storeUrlOf = Effect.fnUntraced(function*(raw: RawConfig, source: string) {
  const group = (raw as Record<string, unknown>)["store"]
  if (group === undefined) return undefined
  const decoded = Schema.decodeUnknownResult(StoreGroup)(group, { errors: "all" })
  if (Result.isFailure(decoded)) return yield* ConfigInvalid.of(faultsOf(decoded.failure, ["store"]), source)
  const { url } = decoded.success
  if (url !== undefined && namesVariable(url)) {
    return yield* ConfigInvalid.of([
      fault("store.url", "must be the address itself: no variable is replaced in it, and GATEWAY_STORE_URL can have it")
    ], source)
  }
  return url === undefined || url.trim() === "" ? undefined : Redacted.make(url)
})

/** Derives a store key from an admin key. */
const derive = (adminKey: Redacted.Redacted<string> | undefined) =>
  adminKey === undefined
    ? undefined
    : Redacted.make(
      createHmac("sha256", Redacted.value(adminKey)).update("model-gateway store").digest("base64url")
    )

/** Value of `GATEWAY_STORE_KEY_PREVIOUS` that selects the derived key. */
const derivedWord = "derived"

/** The previous store key; `undefined` if unset. */
const previousKeyOf = Effect.fnUntraced(function*(environment: EnvironmentShape) {
  const { adminKey, adminKeyPrevious, storeKeyPrevious } = environment
  if (storeKeyPrevious === undefined) return undefined
  const given = Redacted.value(storeKeyPrevious)
  if (given !== derivedWord) {
    if (given.length >= leastKeyLength) return storeKeyPrevious
    return yield* new StoreInvalid({
      message: `GATEWAY_STORE_KEY_PREVIOUS must be ${derivedWord} or have at least ${leastKeyLength} characters`
    })
  }
  const derived = derive(adminKeyPrevious ?? adminKey)
  if (derived !== undefined) return derived
  return yield* new StoreInvalid({
    message: `GATEWAY_STORE_KEY_PREVIOUS=${derivedWord} needs GATEWAY_ADMIN_KEY_PREVIOUS or GATEWAY_ADMIN_KEY: ` +
      "the admin key that the store key was derived from"
  })
})

/** Error message for a key that cannot decrypt the data in the store. */
const otherKeyAdvice = (isDerived: boolean): string =>
  isDerived
    ? "the key derived from GATEWAY_ADMIN_KEY does not decrypt the data in the store: set GATEWAY_STORE_KEY to the key of " +
      "the other nodes. If GATEWAY_ADMIN_KEY was changed, set GATEWAY_STORE_KEY_PREVIOUS=derived and " +
      "GATEWAY_ADMIN_KEY_PREVIOUS to the previous admin key"
    : "GATEWAY_STORE_KEY does not decrypt the data in the store: set it to the key of the other nodes. If it was changed, set " +
      "GATEWAY_STORE_KEY_PREVIOUS to the previous key: derived, if that was derived from GATEWAY_ADMIN_KEY " +
      "(from GATEWAY_ADMIN_KEY_PREVIOUS, if the admin key was changed too)"

/** The store address in the configuration that this node starts with. */
const configuredUrl = Effect.fnUntraced(function*(environment: EnvironmentShape) {
  const { configJson, configPath } = environment
  if (configJson !== undefined) {
    return yield* storeUrlOf(yield* parseVariable(Redacted.value(configJson)), "GATEWAY_CONFIG_JSON")
  }
  const content = yield* (yield* makeConfigFile(configPath)).read
  return Option.isSome(content) && content.value.text.includes("\"store\"")
    ? yield* storeUrlOf(yield* parseConfig(configPath, content.value.text), configPath)
    : undefined
})

/** The store key and the previous one. */
export const storeKeys = Effect.fnUntraced(function*(environment: EnvironmentShape) {
  const key = environment.storeKey ?? derive(environment.adminKey)
  if (key === undefined) {
    return yield* new StoreInvalid({
      message:
        "GATEWAY_STORE_URL needs GATEWAY_STORE_KEY (16 characters or more) or GATEWAY_ADMIN_KEY, the same on all nodes"
    })
  }
  return { key, previousKey: yield* previousKeyOf(environment) }
})

/** Connection options of the store; `undefined` without a store. */
export const storeSettings = Effect.fnUntraced(function*(environment: EnvironmentShape, version: string) {
  const configured = yield* configuredUrl(environment)
  const url = environment.storeUrl ?? configured
  if (url === undefined) return undefined
  const { nodeId, storeKey, storeTimeoutMillis } = environment
  const options: StoreOptions & { readonly nodeId: string } = {
    url,
    ...yield* storeKeys(environment),
    otherKeyAdvice: otherKeyAdvice(storeKey === undefined),
    timeoutMillis: storeTimeoutMillis,
    nodeId: nodeId ?? nodeName(),
    version
  }
  return options
})
