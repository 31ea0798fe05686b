/**
 * The whole contract: every group of the gateway in one `HttpApi`. Importable without the server.
 */
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { currentVersion } from "../admin/system/build.ts"
import { apiId } from "../http/reply.ts"
import { groupsOf } from "../styles/Style.ts"
import { styles } from "../styles/styles.ts"
import { completeDocument } from "./documents/document.ts"
import { OperatorApi } from "./OperatorApi.ts"

/** All groups, without the annotations that only the documents need. */
class Groups extends HttpApi.make(apiId).add(...groupsOf(styles)).addHttpApi(OperatorApi) {}

export class GatewayApi extends Groups.annotateMerge(OpenApi.annotations({
  title: "Model Gateway",
  version: currentVersion,
  description:
    "A gateway for language model APIs: clients keep the API that they use, and each request goes to the upstream that serves its model.",
  license: { name: "MIT" },
  transform: (spec) => completeDocument(Groups, spec as OpenApi.OpenAPISpec)
})) {}
