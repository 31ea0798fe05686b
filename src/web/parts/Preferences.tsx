/**
 * The choices of language, theme and time zone.
 */
import * as preferences from "../state/preferences.ts"
import { useAtom } from "../state/registry.ts"
import { Select } from "./Form.tsx"
import { zoneName } from "./format.ts"

export const Preferences = () => {
  const t = preferences.useTexts().common
  return (
    <div class="preferences">
      <Select
        class=""
        label={t.language}
        value={useAtom(preferences.languageAtom)}
        options={preferences.languages}
        onValue={(language) => void preferences.chooseLanguage(language)}
      />
      <Select
        class=""
        label={t.theme}
        value={useAtom(preferences.themeAtom)}
        options={preferences.themes.map((id) => [id, t.themes[id]] as const)}
        onValue={preferences.chooseTheme}
      />
      <Select
        class=""
        label={t.zone}
        value={useAtom(preferences.zoneAtom)}
        options={preferences.zones.map((id) => [id, id === "utc" ? "UTC" : t.localZone(zoneName())] as const)}
        onValue={preferences.chooseZone}
      />
    </div>
  )
}
