"""NetworkManager or ModemManager as python-dbusmock plays them, or a service that talks nonsense in the name of one.

    network_mock.py ADDRESS networkmanager|modemmanager|nonsense PIPE

Prints "ready" when the name is its own, then takes lines of Python out of the named pipe, each with a number in front, and prints
"done NUMBER" or "failed NUMBER WHY" behind each.
"""

import os
import sys

import dbus
import dbus.bus
import dbus.mainloop.glib
import dbus.service
import dbusmock
import dbusmock.mockobject
from gi.repository import GLib

NM = "org.freedesktop.NetworkManager"
MANAGER = "/org/freedesktop/NetworkManager"
DEVICE = NM + ".Device"
WIRELESS = NM + ".Device.Wireless"
ACTIVE = NM + ".Connection.Active"
MM = "org.freedesktop.ModemManager1"
MODEMS = "/org/freedesktop/ModemManager1"
MODEM = MM + ".Modem"
MOBILE = MODEM + ".Modem3gpp"
BEARER = MM + ".Bearer"

UInt32, String, Path, Paths = dbus.UInt32, dbus.String, dbus.ObjectPath, lambda all: dbus.Array(all, signature="o")


def at(path):
    return dbusmock.get_object(path)


def change(path, interface, **properties):
    """Sets properties, which are told with their values."""
    for name, value in properties.items():
        if name not in at(path).props[interface]:
            at(path).props[interface][name] = value
        at(path).Set(interface, name, value)


def change_silently(path, interface, **properties):
    """Sets properties, and tells only that they have changed."""
    at(path).props[interface].update(properties)
    names = dbus.Array(list(properties), signature="s")
    nothing = dbus.Dictionary({}, signature="sv")
    at(path).EmitSignal(dbus.PROPERTIES_IFACE, "PropertiesChanged", "sa{sv}as", [interface, nothing, names])


# NetworkManager


def add_device(name, metered=None, kind=1, ip_name=""):
    path = main.AddEthernetDevice(name, name, 100) if kind != 2 else main.AddWiFiDevice(name, name, 100)
    change(path, DEVICE, DeviceType=UInt32(kind), IpInterface=String(ip_name))
    if metered is not None:
        change(path, DEVICE, Metered=UInt32(metered))


def metered(name, value):
    change("%s/Devices/%s" % (MANAGER, name), DEVICE, Metered=value)


def remove_device(name):
    path = "%s/Devices/%s" % (MANAGER, name)
    change(MANAGER, NM, Devices=Paths([p for p in at(MANAGER).props[NM]["Devices"] if p != path]))
    main.RemoveObject(path)


def connect(name, number, identity, uuid):
    path = "%s/ActiveConnection/%d" % (MANAGER, number)
    main.AddObject(path, ACTIVE, {"Id": identity, "Uuid": uuid}, [])
    change("%s/Devices/%s" % (MANAGER, name), DEVICE, ActiveConnection=Path(path))


def join(name, number, ssid):
    """The Wi-Fi device is in this network now: as with the real one, the news are of the device."""
    point = "%s/AccessPoint/%d" % (MANAGER, number)
    main.AddObject(point, NM + ".AccessPoint", {"Ssid": dbus.ByteArray(ssid), "Strength": dbus.Byte(50)}, [])
    device = "%s/Devices/%s" % (MANAGER, name)
    at(device).props[WIRELESS]["ActiveAccessPoint"] = Path(point)
    change(device, DEVICE, State=UInt32(100))


def see(name, number, ssid):
    """This network is within the device's reach."""
    point = "%s/AccessPoint/%d" % (MANAGER, number)
    main.AddObject(point, NM + ".AccessPoint", {"Ssid": dbus.ByteArray(ssid), "Strength": dbus.Byte(50)}, [])
    wireless = at("%s/Devices/%s" % (MANAGER, name)).props[WIRELESS]
    wireless["AccessPoints"] = Paths(list(wireless.get("AccessPoints", [])) + [point])


# ModemManager


def add_modem(number, interface, registration, operator="26201", state=11):
    bearer = "%s/Bearer/%d" % (MODEMS, number)
    main.AddObject(bearer, BEARER, {"Interface": interface, "Connected": state == 11}, [])
    path = "%s/Modem/%d" % (MODEMS, number)
    ports = dbus.Array([("cdc-wdm%d" % number, UInt32(6)), (interface, UInt32(2))], signature="(su)")
    main.AddObject(path, MODEM, {"Bearers": Paths([bearer]), "State": dbus.Int32(state), "Ports": ports}, [])
    at(path).AddProperties(MOBILE, {"RegistrationState": UInt32(registration), "OperatorCode": operator})
    main.object_manager_emit_added(path)


def registration(number, state):
    change("%s/Modem/%d" % (MODEMS, number), MOBILE, RegistrationState=UInt32(state))


def modem_state(number, state):
    path = "%s/Modem/%d" % (MODEMS, number)
    change(path, MODEM, State=dbus.Int32(state))
    at(path).EmitSignal(MODEM, "StateChanged", "iiu", [0, state, 1])


def bearer_connected(number, is_connected):
    """Told, as by the real one, with the state of the modem too."""
    change("%s/Bearer/%d" % (MODEMS, number), BEARER, Connected=is_connected)
    old, new = (11, 8) if not is_connected else (8, 11)
    at("%s/Modem/%d" % (MODEMS, number)).EmitSignal(MODEM, "StateChanged", "iiu", [old, new, 1])


def remove_modem(number):
    path = "%s/Modem/%d" % (MODEMS, number)
    main.object_manager_emit_removed(path)
    main.RemoveObject(path)


# Nonsense


class Nonsense(dbus.service.Object):
    """Answers whatever it is told to; None for no answer at all."""

    said = None
    # dbusmock looks here first, in every object.
    interface, methods = NM, {}

    @dbus.service.method(
        dbus.PROPERTIES_IFACE, in_signature="s", async_callbacks=("reply", "fail"), byte_arrays=True)
    def GetAll(self, interface, reply, fail):
        if isinstance(self.said, Exception):
            fail(self.said)
        elif self.said is not None:
            reply(self.said)

    @dbus.service.signal(dbus.PROPERTIES_IFACE, signature="sa{sv}as")
    def PropertiesChanged(self, interface, changed, invalidated):
        pass


def say(answer):
    main.said = answer
    main.PropertiesChanged(NM, {}, ["Devices"])


def take_line(pipe, _):
    for line in os.read(pipe, 1 << 16).decode().splitlines():
        number, code = line.split(" ", 1)
        try:
            exec(code, globals())
            print("done %s" % number, flush=True)
        except Exception as error:
            print("failed %s %r" % (number, error), flush=True)
    return True


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
address, kind, pipe = sys.argv[1:]
bus = dbus.bus.BusConnection(address)
name = dbus.service.BusName(MM if kind == "modemmanager" else NM, bus, do_not_queue=True)
if kind == "nonsense":
    main = Nonsense(name, MANAGER)
else:
    path = MODEMS if kind == "modemmanager" else "/org/freedesktop"
    main = dbusmock.mockobject.DBusMockObject(name, path, dbusmock.mockobject.OBJECT_MANAGER_IFACE, {}, "/dev/null", True)
    dbusmock.mockobject.objects[path] = main
    if kind == "networkmanager":
        main.AddTemplate("networkmanager", dbus.Dictionary({}, signature="sv"))
# For reading and writing, so that it does not end when a writer does.
GLib.io_add_watch(os.open(pipe, os.O_RDWR | os.O_NONBLOCK), GLib.IO_IN, take_line)
print("ready", flush=True)
GLib.MainLoop().run()
