/**
 * The running build and the latest public release (spec "Versioning").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { documented, reading } from "../../http/documented.ts"
import { AdminEdge } from "../edges.ts"

/** What is not known of the latest release is `null`, and `check_error` says why. */
export const VersionReply = Schema.Struct({
  success: Schema.Boolean,
  current_version: Schema.String,
  current_tag: Schema.String,
  /** Where the running version comes from. */
  source: Schema.String,
  /** What was built, and what it runs on. Only releases know their commit and its date; else both are `null`. */
  build: Schema.Struct({
    commit: Schema.NullOr(Schema.String),
    date: Schema.NullOr(Schema.String),
    node: Schema.String,
    platform: Schema.String,
    form: Schema.Literals(["source", "bundle", "package", "executable"])
  }),
  /** ISO 8601: when the latest release was looked up. */
  checked_at: Schema.String.annotate({ description: "ISO 8601." }),
  latest_tag: Schema.NullOr(Schema.String),
  latest_version: Schema.NullOr(Schema.String),
  release_url: Schema.NullOr(Schema.String),
  published_at: Schema.NullOr(Schema.String),
  has_update: Schema.Boolean,
  check_error: Schema.optionalKey(Schema.String).annotate({ description: "Why the latest release is not known." })
}).annotate({ identifier: "Version" })

export class AdminVersionGroup extends HttpApiGroup.make("admin-version").add(
  HttpApiEndpoint.get("version", "/admin/version", { success: VersionReply }).annotateMerge(documented({
    summary: "Read the running version and the latest release",
    description: "HTTP 200 with `check_error` where the release could not be looked up.",
    errors: reading
  }))
).middleware(AdminEdge).annotate(OpenApi.Description, "Operators: version") {}
