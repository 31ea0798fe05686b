/**
 * The whole contract: every group of the gateway in one `HttpApi`. Importable without the server.
 */
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { currentVersion } from "../admin/system/build.ts"
import { apiId } from "../http/reply.ts"
import { groupsOf } from "../styles/Style.ts"
import { styles } from "../styles/styles.ts"
import { AdminApi } from "./AdminApi.ts"
import { completeDocument } from "./documents/document.ts"
import { HealthGroup } from "./healthApi.ts"
import { MetricsGroup } from "./observability/metricsApi.ts"

/** What operators and their machines ask. */
export class OperatorApi extends HttpApi.make(apiId).add(HealthGroup, MetricsGroup).addHttpApi(AdminApi) {}

/** Without what only documents say. */
class Groups extends HttpApi.make(apiId).add(...groupsOf(styles)).addHttpApi(OperatorApi) {}

/** The gateway's API. */
export class GatewayApi extends Groups.annotateMerge(OpenApi.annotations({
  title: "Model Gateway",
  version: currentVersion,
  description: "One upstream, reached through a pool of accounts, behind four client API styles.",
  license: { name: "MIT" },
  transform: (spec) => completeDocument(Groups, spec as OpenApi.OpenAPISpec)
})) {}
