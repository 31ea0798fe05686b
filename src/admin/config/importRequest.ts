/**
 * What an import is asked to take: the mode and the configuration, in whichever of its places each stands (spec
 * "POST /admin/config/import").
 */
import * as Result from "effect/Result"
import type { ImportMode } from "../../config/importConfig.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"

export interface ImportRequest {
  readonly mode: ImportMode
  readonly config: RawConfig
}

const isNamed = (mode: unknown): boolean => mode !== undefined && mode !== null && mode !== ""

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
  if (!Object.hasOwn(body, "config")) {
    const { mode: _mode, ...config } = body
    return Result.succeed({ mode, config })
  }
  const config = body["config"]
  return isJsonObject(config)
    ? Result.succeed({ mode, config })
    : Result.fail(invalidRequest("config must be an object", "config"))
}
