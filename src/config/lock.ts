/**
 * The lock of the configuration, by its file or by the environment: operators change it in its file alone.
 */
import { ConfigLocked } from "./ConfigError.ts"
import type { ConfigSource } from "./ConfigOrigin.ts"
import type { GatewayConfig } from "./GatewayConfig.ts"

/** Makes the refusal of an operator's change; `undefined` while the configuration is open. */
export const makeLock =
  ({ config_path, env_backed, env_locked }: ConfigSource) => ({ admin }: GatewayConfig): ConfigLocked | undefined => {
    if (!env_locked && !admin.locked) return undefined
    const by = env_locked ? "GATEWAY_LOCKED" : "admin.locked"
    const place = env_backed ? "GATEWAY_CONFIG_JSON" : config_path === "" ? "the app" : config_path
    return new ConfigLocked({
      message: `the configuration is locked (${by}): change it in ${place}, not by the admin API`
    })
  }
