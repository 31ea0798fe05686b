/**
 * The upstreams with what they do now, and the routes.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useMemo } from "preact/hooks"
import { hasApis } from "../../api.ts"
import type { Reply } from "./client.ts"
import { useReread } from "./live.ts"
import { defaultUpstream } from "./names.ts"
import { readOf } from "./reads.ts"
import { useAtom } from "./registry.ts"

export type UpstreamItem = Reply<"admin-upstreams", "list">["upstreams"][number]
export type Routes = Reply<"admin-routes", "get">["routes"]
export type Route = Routes[string]

export const upstreamsAtom = readOf("admin-upstreams", "list", { reactivityKeys: ["upstreams"] })
export const routesAtom = readOf("admin-routes", "get", { reactivityKeys: ["routes"] })

/** Reads the upstreams again and again while the view is shown. */
export const useCurrentUpstreams = (): void => useReread(upstreamsAtom, 3_000)

/** The upstreams whose servers have the Responses API, whose accounts may belong to an organisation. */
export const useUpstreamsWithOrganizations = (): ReadonlySet<string> => {
  const reply = Option.getOrUndefined(AsyncResult.value(useAtom(upstreamsAtom)))
  return useMemo(
    () => new Set(reply?.upstreams.flatMap(({ driver, name }) => hasApis(driver) ? [name] : [])),
    [reply]
  )
}

const none: ReadonlyArray<string> = []

/** The names of the upstreams; empty for a configuration that has `default` alone, and while they are loaded. */
export const useSeveralUpstreams = (): ReadonlyArray<string> => {
  const reply = Option.getOrUndefined(AsyncResult.value(useAtom(upstreamsAtom)))
  return useMemo(() => {
    const names = reply?.upstreams.map(({ name }) => name) ?? none
    return names.length > 1 || names.some((name) => name !== defaultUpstream) ? names : none
  }, [reply])
}
