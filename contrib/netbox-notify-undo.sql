-- Takes away what netbox-notify.sql made. May be run again.
--
--     psql -v ON_ERROR_STOP=1 -d netbox -f netbox-notify-undo.sql

BEGIN;
SET LOCAL lock_timeout = '5s';

SELECT format('DROP TRIGGER muster_notify ON %s', tgrelid::regclass)
FROM pg_trigger WHERE tgname = 'muster_notify' AND NOT tgisinternal
\gexec

DROP FUNCTION IF EXISTS muster_notify();
COMMIT;
