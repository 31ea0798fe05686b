/**
 * Support of the configuration's tests: a temporary folder, and a store on its files.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as PlatformError from "effect/PlatformError"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { servicesIn, withTransfer } from "../support/configServices.ts"

/** Runs with only the given environment variables. */
export const withVariables = (variables: Readonly<Record<string, string>>) =>
  ConfigProvider.layer(ConfigProvider.fromEnvRecord({ ...variables }))

/** The services of a configuration like the service's, until the end of the scope; `faulty` wraps its file system. */
export const startStore = (
  variables: Readonly<Record<string, string>>,
  faulty?: Layer.Layer<FileSystem.FileSystem, never, FileSystem.FileSystem>
) => {
  const platform = faulty === undefined
    ? NodeServices.layer
    : Layer.provideMerge(faulty, NodeServices.layer)
  return Effect.map(
    Layer.build(
      withTransfer(ConfigStore.layer).pipe(
        Layer.provide(Environment.layer),
        Layer.provide(withVariables(variables)),
        Layer.provide(platform)
      )
    ),
    servicesIn
  )
}

/** A file system on which one operation fails. */
export const failing = (method: "rename" | "open" | "writeFileString", code: string) =>
  Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs) =>
      FileSystem.FileSystem.of({
        ...fs,
        [method]: () =>
          Effect.fail(PlatformError.systemError({
            _tag: "Unknown",
            module: "FileSystem",
            method,
            cause: Object.assign(new Error(code), { code })
          }))
      }))
  )

/** A temporary folder. */
export const folder = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped({ prefix: "config-" }))

/** A configuration file in a temporary folder, with the given text; missing without one. */
export const configFile = Effect.fnUntraced(function*(content?: RawConfig | string) {
  const fs = yield* FileSystem.FileSystem
  const path = `${yield* folder}/config.json`
  if (content !== undefined) {
    yield* fs.writeFileString(path, typeof content === "string" ? content : JSON.stringify(content))
  }
  return path
})

/** The parsed JSON of a file. */
export const readJson = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const value: unknown = JSON.parse(yield* fs.readFileString(path))
  return value
})

/** Adds a business key. */
export const addKey = (store: ConfigStore["Service"], key: string) =>
  store.update((raw) => Effect.succeed({ ...raw, keys: [...(Array.isArray(raw["keys"]) ? raw["keys"] : []), key] }))

/** Collects the messages that are logged. */
export const collectLogs = (into: Array<string>) =>
  Logger.layer([Logger.make(({ message }) => {
    into.push(String(message))
  })])

export { NodeServices }
