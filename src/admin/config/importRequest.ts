/**
 * What an import is asked to take: the mode and the configuration, in whichever of its places each stands (spec
 * "POST /admin/config/import").
 */
import * as Result from "effect/Result"
import { ConfigDocument } from "../../config/document.ts"
import type { ImportMode } from "../../config/importConfig.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { nearest } from "../../domain/nearest.ts"
import { atOnce } from "../../domain/stream/slices.ts"
import { refusing } from "../adminBody.ts"
import { ExportReply, ImportWrapper } from "./Api.ts"

export interface ImportRequest {
  readonly mode: ImportMode
  readonly config: RawConfig
}

const isNamed = (mode: unknown): boolean => mode !== undefined && mode !== null && mode !== ""

/** The reply to an export is a wrapper too. */
const refuseWrapper = refusing([ImportWrapper, ExportReply])

/** Whether a field of a configuration that stands by itself is one of the wrapper's, or was meant to be. */
const isOfWrapper = (name: string): boolean =>
  !Object.hasOwn(ConfigDocument.fields, name) && nearest(name, Object.keys(ImportWrapper.fields)).length > 0

/** The fields of the wrapper, which are strict; the configuration's own may be unknown. */
const wrapperOf = (body: RawConfig): RawConfig =>
  Object.hasOwn(body, "config")
    ? body
    : Object.fromEntries(Object.entries(body).filter(([name]) => isOfWrapper(name)))

/** Reads a body that is a configuration or a wrapper around one; the query's mode comes before the body's. */
export const readImport = (
  body: RawConfig,
  queryMode: string | undefined
): Result.Result<ImportRequest, GatewayError> => {
  const named = isNamed(queryMode) ? queryMode : body["mode"]
  const mode = !isNamed(named) ? "merge" : typeof named === "string" ? named.trim().toLowerCase() : undefined
  if (mode !== "merge" && mode !== "replace") {
    return Result.fail(invalidRequest("mode must be merge or replace", "mode"))
  }
  const refused = atOnce(refuseWrapper(wrapperOf(body)))
  if (refused !== undefined) return Result.fail(refused)
  if (!Object.hasOwn(body, "config")) {
    const { mode: _mode, ...config } = body
    return Result.succeed({ mode, config })
  }
  const config = body["config"]
  return isJsonObject(config)
    ? Result.succeed({ mode, config })
    : Result.fail(invalidRequest("config must be an object", "config"))
}
