/**
 * The role that each endpoint of the admin API needs. An endpoint that is not listed needs `admin`, as every change does; a test
 * demands that every `GET` is listed.
 */
import type { Role } from "../config/schema.ts"

type Roles = { readonly [group: string]: { readonly [endpoint: string]: Role } }

/** By group and endpoint. Secrets, exports and bodies of requests are for `admin`. */
export const endpointRoles: Roles = {
  "admin-config": { get: "admin", export: "admin", exportShort: "admin" },
  "admin-settings": { get: "viewer", fields: "viewer" },
  "admin-keys": { list: "viewer" },
  "admin-usage": { query: "viewer", csv: "viewer" },
  "admin-minutes": { list: "viewer" },
  "admin-changes": { list: "viewer" },
  "admin-tokens": { list: "viewer" },
  "admin-accounts": { list: "viewer", queue: "viewer" },
  "admin-upstreams": { list: "viewer", models: "viewer" },
  "admin-models": { list: "viewer" },
  "admin-prices": { get: "viewer" },
  "admin-routes": { get: "viewer" },
  "admin-captures": { list: "admin", get: "admin" },
  "admin-samples": { list: "admin", query: "admin" },
  // A viewer gets a record without its bodies.
  "admin-requests": { list: "viewer", facets: "viewer", histogram: "viewer", sessions: "viewer", get: "viewer" },
  "admin-events": { stream: "viewer" },
  "admin-host": { config: "viewer", status: "viewer" },
  "admin-version": { version: "viewer" },
  "admin-nodes": { nodes: "viewer" },
  "admin-webhooks": { get: "viewer", deliveries: "viewer" }
}

/** The role that an endpoint needs. */
export const roleOf = (group: string, endpoint: string): Role => endpointRoles[group]?.[endpoint] ?? "admin"
