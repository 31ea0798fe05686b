/**
 * The contract of the admin API. Importable without the server.
 */
import * as HttpApi from "effect/http-api/HttpApi"
import { AdminAccountsGroup } from "../admin/accounts/Api.ts"
import { AdminAuthGroup, AdminSessionGroup } from "../admin/auth/Api.ts"
import { AdminCapturesGroup } from "../admin/captures/Api.ts"
import { AdminConfigGroup } from "../admin/config/Api.ts"
import { AdminEventsGroup } from "../admin/events/Api.ts"
import { AdminHostGroup } from "../admin/host/Api.ts"
import { AdminKeysGroup } from "../admin/keys/Api.ts"
import { AdminRequestsGroup } from "../admin/requests/Api.ts"
import { AdminSamplesGroup } from "../admin/samples/Api.ts"
import { AdminSettingsGroup } from "../admin/settings/Api.ts"
import { AdminNodesGroup, AdminSelfTestGroup, AdminVersionGroup } from "../admin/system/Api.ts"
import { AdminUsageGroup } from "../admin/usage/Api.ts"
import { apiId } from "../http/reply.ts"

/** The admin groups of the gateway's API. */
export class AdminApi extends HttpApi.make(apiId).add(
  AdminAuthGroup,
  AdminSessionGroup,
  AdminConfigGroup,
  AdminSettingsGroup,
  AdminKeysGroup,
  AdminUsageGroup,
  AdminAccountsGroup,
  AdminSelfTestGroup,
  AdminCapturesGroup,
  AdminSamplesGroup,
  AdminRequestsGroup,
  AdminEventsGroup,
  AdminHostGroup,
  AdminVersionGroup,
  AdminNodesGroup
) {}
