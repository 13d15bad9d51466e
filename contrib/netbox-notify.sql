-- Lets a NetBox database tell muster what changed: see docs/push.md.
--
--     psql -v ON_ERROR_STOP=1 -d netbox -f netbox-notify.sql
--     psql -v ON_ERROR_STOP=1 -v channel=other_channel -d netbox -f netbox-notify.sql
--
-- Run it as the owner of NetBox's tables. It may be run again at any time, and it belongs after each upgrade of NetBox:
-- tables that are new then get their trigger. netbox-notify-undo.sql takes all of it away.
--
-- A notification holds a table's name and ids, nothing else:
--     {"t": "dcim_interface", "op": "u", "id": 70, "d": [7, 8], "i": []}
-- "op" is i, u or d; "d" are devices, "i" interfaces that something is or was assigned to.

\if :{?channel} \else \set channel muster_netbox \endif

BEGIN;
-- Triggers wait for whoever writes: not for long, since NetBox waits behind them.
SET LOCAL lock_timeout = '5s';

-- Arguments: channel, column with the device's id, column with an interface's id. Rows are read as JSON, so that a column
-- that a later NetBox renames is missing here and breaks no write there. Nothing is read but the row itself.
CREATE OR REPLACE FUNCTION muster_notify() RETURNS trigger
LANGUAGE plpgsql AS $muster$
DECLARE
    former jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE to_jsonb(OLD) END;
    latter jsonb := CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE to_jsonb(NEW) END;
BEGIN
    -- NetBox counts in an object what belongs to it: a new device changes the row of its device type, too.
    IF TG_OP = 'UPDATE' AND NOT EXISTS (
        SELECT FROM jsonb_each(latter) AS f (name, value)
        WHERE value IS DISTINCT FROM former -> name AND name NOT LIKE '%\_count'
    ) THEN
        RETURN NULL;
    END IF;
    PERFORM pg_notify(TG_ARGV[0], jsonb_build_object(
        't', TG_TABLE_NAME,
        'op', lower(left(TG_OP, 1)),
        'id', coalesce(latter -> 'id', former -> 'id'),
        'd', (SELECT coalesce(jsonb_agg(DISTINCT id), '[]') FROM (VALUES (former -> TG_ARGV[1]), (latter -> TG_ARGV[1])) AS ids (id)
              WHERE jsonb_typeof(id) = 'number'),
        'i', (SELECT coalesce(jsonb_agg(DISTINCT id), '[]') FROM (VALUES (former -> TG_ARGV[2]), (latter -> TG_ARGV[2])) AS ids (id)
              WHERE jsonb_typeof(id) = 'number')
    )::text);
    RETURN NULL;
END
$muster$;

-- Tables that this NetBox does not have are left out.
SELECT format('DROP TRIGGER IF EXISTS muster_notify ON %1$s;
CREATE TRIGGER muster_notify AFTER INSERT OR UPDATE OR DELETE ON %1$s
FOR EACH ROW EXECUTE FUNCTION muster_notify(%2$L, %3$L, %4$L)', to_regclass(name), :'channel', device, interface)
FROM (VALUES
    ('dcim_device', 'id', ''),
    ('dcim_interface', 'device_id', ''),
    ('ipam_ipaddress', '', 'assigned_object_id'),
    ('dcim_macaddress', '', 'assigned_object_id'),
    ('dcim_cable', '', ''),
    ('dcim_cabletermination', '_device_id', ''),
    -- What many devices point at: muster then reads everything soon.
    ('dcim_site', '', ''),
    ('dcim_location', '', ''),
    ('dcim_rack', '', ''),
    ('dcim_devicetype', '', ''),
    ('dcim_devicerole', '', ''),
    ('dcim_manufacturer', '', ''),
    ('tenancy_tenant', '', ''),
    ('extras_tag', '', ''),
    ('extras_configcontext', '', '')
) AS tables (name, device, interface)
WHERE to_regclass(name) IS NOT NULL
\gexec

COMMIT;
