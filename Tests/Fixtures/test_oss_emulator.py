"""The emulator, held against the vendor's own clients, the known vectors, and each rule by a raw request.

    python -m unittest -v test_oss_emulator        in this folder, with the packages of oss_emulator.py, and beside
                                                   them alibabacloud-vod20170321==3.12.1, aliyun-python-sdk-vod==2.16.32
"""

import base64
import datetime
import hashlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
import xml.etree.ElementTree as ElementTree
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote, urlencode

import alibabacloud_oss_v2 as oss_v2
import oss2
from alibabacloud_oss_v2.types import Credentials, HttpRequest, SigningContext
from alibabacloud_tea_openapi.utils import Utils
from alibabacloud_tea_openapi.utils_models import Config
from alibabacloud_vod20170321 import models as vod_models
from alibabacloud_vod20170321.client import Client as VodClient
from aliyunsdkcore.acs_exception.exceptions import ServerException
from aliyunsdkcore.auth.credentials import StsTokenCredential
from aliyunsdkcore.client import AcsClient
from aliyunsdkvod.request.v20170321 import CreateUploadImageRequest, CreateUploadVideoRequest, RefreshUploadVideoRequest
from Tea.exceptions import TeaException

import oss_signatures as signatures

LONG = "LTAI5tTestLongLivedKey", "LongLivedSecret0123456789abcdef"
HERE = Path(__file__).parent
SMALL = 102400


def crc64(data):
    one = signatures.Crc64()
    one.update(data)
    return one.crc


def pattern(count):
    return bytes(((i * 2654435761) >> 13) & 255 for i in range(count))


PARTS = [os.urandom(SMALL), os.urandom(SMALL), os.urandom(1000)]


class Emulator(unittest.TestCase):
    """One emulator for a class of tests, and as many empty starts as there are tests."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.process = subprocess.Popen([sys.executable, HERE / "oss_emulator.py", "--port", "0", "--state", cls.folder.name],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        cls.port = json.loads(cls.process.stdout.readline())["port"]
        cls.base = f"http://127.0.0.1:{cls.port}"

    @classmethod
    def tearDownClass(cls):
        cls.process.stdin.close()
        cls.process.wait(10)
        cls.process.stdout.close()
        cls.folder.cleanup()

    def setUp(self):
        self.control("forget", ["record", "faults", "objects", "uploads", "videos"])
        self.control("settings", {"skew": 0, "page_size": 1000, "lifetime": 3000, "path_style": True, "said_lifetime": None, "say_end": True})

    # Asking

    def raw(self, method, target, body=b"", headers=None, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in ({"Host": host or f"127.0.0.1:{self.port}", "Content-Length": str(len(body))} | (headers or {})).items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            answer.data = answer.read()
            return answer
        finally:
            connection.close()

    def control(self, name, wish="ask"):
        answer = self.raw("GET", "/_control/" + name) if wish == "ask" else self.raw("POST", "/_control/" + name, json.dumps(wish).encode())
        self.assertEqual(answer.status, 200, answer.data)
        return json.loads(answer.data)

    def faults(self, *faults):
        self.control("faults", list(faults))

    def sent(self, **facts):
        return [one for one in self.control("record") if all(one[name] == value for name, value in facts.items())]

    def oss(self, method, key, query="", body=b"", headers=None, who=LONG, version=4, when=None, bucket="cameras", target=None, host=None):
        """A raw storage request, signed by the vendor's signer classes; `who` is (id, secret[, token])."""
        when = datetime.datetime.fromtimestamp(time.time() if when is None else when, datetime.timezone.utc)
        token = who[2] if len(who) > 2 else None
        target = target or f"/{bucket}/{quote(key)}" + ("?" + query if query else "")
        request = HttpRequest(method, "http://x" + target, headers=dict(headers or {}))
        context = SigningContext(product="oss", region="cn-shanghai", bucket=bucket, key=key, request=request, signing_time=when)
        if version == 1:
            if token:
                request.headers["x-oss-security-token"] = token
            context.credentials = Credentials(who[0], who[1])
            signatures.SignerV1().sign(context)
        else:
            context.credentials = Credentials(who[0], who[1], token)
            signatures.SignerV4().sign(context)
        headers = dict(request.headers)
        return self.raw(method, target, body, headers, host)

    def refused(self, answer, status, code, ec=None):
        self.assertEqual(answer.status, status, answer.data)
        said = ElementTree.fromstring(answer.data)
        self.assertEqual(said.findtext("Code"), code, answer.data)
        self.assertEqual(said.findtext("RequestId"), answer.getheader("x-oss-request-id"))
        if ec:
            self.assertEqual((said.findtext("EC"), answer.getheader("x-oss-ec")), (ec, ec))
        return said

    def taken(self, answer, status=200):
        self.assertEqual(answer.status, status, answer.data)
        self.assertTrue(answer.getheader("Date") and answer.getheader("x-oss-request-id"))
        return answer

    def sts(self, **wish):
        new = self.control("keys", wish)
        return new["AccessKeyId"], new["AccessKeySecret"], new["SecurityToken"]

    def start(self, key="v.mp4", **more):
        return ElementTree.fromstring(self.taken(self.oss("POST", key, "uploads", **more)).data).findtext("UploadId")

    def part(self, upload, n, data, key="v.mp4", **more):
        return self.oss("PUT", key, f"partNumber={n}&uploadId={upload}", data, **more)

    def finish(self, upload, parts, key="v.mp4", **more):
        """`parts` is [(number, data or ETag)], or a whole body."""
        if not isinstance(parts, bytes):
            named = [(n, hashlib.md5(it).hexdigest() if isinstance(it, bytes) else it) for n, it in parts]
            parts = ("<CompleteMultipartUpload>" + "".join(
                f"<Part><PartNumber>{n}</PartNumber><ETag>\"{etag}\"</ETag></Part>" for n, etag in named) + "</CompleteMultipartUpload>").encode()
        return self.oss("POST", key, f"uploadId={upload}", parts, **more)

    def whole(self, key="v.mp4", parts=PARTS):
        upload = self.start(key)
        for n, data in enumerate(parts, 1):
            self.taken(self.part(upload, n, data, key))
        return upload


# ------------------------------------------------------------------------------------------------ vectors


class Vectors(unittest.TestCase):
    """Known answers, through the very functions that the emulator verifies with."""

    BUCKET, KEY = "outin-test-bucket", "sv/5a1b2c3d/5a1b2c3d-cam one+é視頻.mp4"
    STS = "STS.NTestAccessKeyId0001", "TestAccessKeySecret0123456789abcdef", "CAISfakeSecurityToken/with+plus=="
    UPLOAD = "0004B9894A22E5B1888A1E29F8236E2D"
    NOTE = ("eyJWb2QiOnsiVGl0bGUiOiJmcm9udCBkb29yIiwiVGFncyI6ImNhbTEsbmlnaHQiLCJDYXRlSWQiOiIxOSIsIklzUHJvY2VzcyI6InRydWUiLCJVc2VyRGF0YSI6ey"
            "JJc1Nob3dXYXRlck1hcmsiOiJmYWxzZSIsIlByaW9yaXR5IjoiNiJ9fX0=")
    CASES = [
        (STS, "POST", "uploads", {"content-type": "video/mp4"}, "TDGmE117eMj6jjGRzrKMWPF8Vhw=",
         "74122625ddc6d5391796ad0763e4c8f7ce9c14d336cb74caef8201c7c2370161", "825df591a18745fc8e9fa871936522a13f7e90a15f32d65450fa3ff01ca9eb19"),
        (STS, "PUT", f"partNumber=1&uploadId={UPLOAD}", {"content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}, "mHl7LHNTnu2uew3GnRSKuFWsAqY=",
         "dd4bd7eae6202913c9bafee111363fbdbab948e19abb5ea9d6b1a6eb113b7432", "3b63d0a8f48740003c6a15f56ad383a616a29d7e23420562fa1ff89cfc90b6d9"),
        (STS, "GET", f"uploadId={UPLOAD}&max-parts=1000&part-number-marker=2", {}, "aTf4lrRFXi3iWRE4kIN5cvpETeM=",
         "f576ad466a7adc1779a039786787ab01a4e3d5a7dad1569163c36c44d9830ba4", "954498fe4792b0ea5c0607908850deb81419336d8646ddaa2068482afa15b8d6"),
        (STS, "POST", f"uploadId={UPLOAD}", {"content-type": "application/xml", "x-oss-notification": NOTE}, "Io+2jUFaDNc+5YfeGArA9Cz5gFA=",
         "b6d5c93a6297a9a6bf2e699c56a1cb43ebe4ce8d3412e7f1d524ed2a22992c36", "b258b2b83fb238aa41b2b472510d7a71c6317f765fb95d7f6fca0e46610dbd4f"),
        (STS, "DELETE", f"uploadId={UPLOAD}", {}, "HWmddwc9ehSCLp13v04HTahck1Q=",
         "dfbf65b349897c742151d3e32bb0d9dd3f102b49934d90fd08fa67f11fe01a0b", "abe55438971cad7a77909340eae8e5e044e9013c74d599726fba08fbb0c4f837"),
        (STS, "PUT", "", {"content-type": "image/jpeg", "x-oss-meta-cam": "Front Door", "x-oss-forbid-overwrite": "true"},
         "3EU0tDtP8bt7K0uxZLVdjYocHk8=", "178909857088ea345fb6351bed294c391be06f7348c52f0dde22cf44ed0454ea",
         "f0e8857798676ddb267ff9a88252d344796816091dd7f0fe6d81d48ee4802bb6"),
        (STS, "POST", "append&position=65536", {"content-type": "application/octet-stream"}, "GcQzW3gKjjUaZzjAYI4oGpCMcSw=",
         "b788e03076e2a69814f587f85500cfe4c3feba32a43b140f64b99d42af08c6fb", "e4d07459b291e20fbcd2b750ea2bffac9de4898763934c557ab7cd76c0503484"),
        (LONG, "POST", "uploads", {"content-type": "video/mp4"}, "7oVtNq3sxtj35JhTSrTfOkGmtdw=",
         "a5adf43c8494350c56ca8b838426f00871a2f50710f1a0f8b94ff4606690815f", "f705702bb500cfd86d6b347f645986a1c8b00a85a9766379cb11e1ac82dd74be"),
        (LONG, "PUT", f"partNumber=1&uploadId={UPLOAD}", {"content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}, "YWqEXOMPLgOuZV+ycvYTzJ9EFs8=",
         "38cb0a125905acdba8c908cad0eff82a31e394974bf82fdeae07fc4ee4fda1ab", "2e9193da4fd3f6730277bfa9c5971224b8bcb51bcfff16b8dc74bf1f2ef2e882"),
    ]

    def headers(self, who, more):
        return more | ({"x-oss-security-token": who[2]} if len(who) > 2 else {})

    def test_first_signature(self):
        for who, method, query, more, right, _, _ in self.CASES:
            with self.subTest(method=method, query=query):
                headers = {"date": "Sat, 13 Jul 2024 08:30:05 GMT"} | self.headers(who, more)
                self.assertEqual(signatures.oss_v1(who[1], method, self.BUCKET, self.KEY, signatures.pairs(query), headers)[1], right)

    def test_fourth_signature(self):
        for who, method, query, more, _, canonical, right in self.CASES:
            with self.subTest(method=method, query=query):
                headers = {"x-oss-date": "20240713T083005Z", "x-oss-content-sha256": "UNSIGNED-PAYLOAD"} | self.headers(who, more)
                for spelled in (query, query.replace("uploads", "uploads=").replace("append&", "append=&")):
                    found = signatures.oss_v4(who[1], method, self.BUCKET, self.KEY, signatures.pairs(spelled), headers, "cn-shanghai", "20240713")
                    self.assertEqual(hashlib.sha256(found[2].encode()).hexdigest(), canonical)
                    self.assertEqual(found[1], right)

    def test_fourth_signature_with_further_headers(self):
        headers = {"x-oss-date": "20240713T083005Z", "x-oss-content-sha256": "UNSIGNED-PAYLOAD", "content-length": "1048576",
                   "host": "outin-test-bucket.oss-cn-shanghai.aliyuncs.com", "content-type": "application/octet-stream"}
        found = signatures.oss_v4(LONG[1], "PUT", self.BUCKET, "a/b.mp4", signatures.pairs("partNumber=2&uploadId=U1"), headers, "cn-shanghai",
                                  "20240713", ["content-length", "host"])
        self.assertEqual(hashlib.sha256(found[2].encode()).hexdigest(), "9b86bc32c545f781d8f7b9ba161473d52adec184c0e8c3079998bdd25b12e7fc")
        self.assertEqual(found[1], "485c20c8af705df3278fbe29236116421c083f3e727f677a8447e5cb427ab3c8")

    BUSINESS = {"Title": "front door 視頻 * ~ (1)", "FileName": "cam one/2024-07-13_08-30.mp4", "FileSize": "10485760", "Tags": "cam1,night",
                "CateId": "19"}

    def test_remote_call_by_query(self):
        common = {"Version": "2017-03-21", "Format": "JSON", "SecurityToken": self.STS[2], "AccessKeyId": self.STS[0],
                  "SignatureMethod": "HMAC-SHA1", "SignatureVersion": "1.0", "SignatureNonce": "15215528852396c1-fixed-nonce",
                  "Timestamp": "2024-07-13T08:30:05Z"}
        create = common | self.BUSINESS | {"Action": "CreateUploadVideo"}
        more = create | {"RegionId": "cn-shanghai", "SignatureType": ""}
        refresh = common | {"Action": "RefreshUploadVideo", "VideoId": "93ab850b4f6f44eab54b6e91d24d81d4"}
        for given, method, right in ((create, "GET", "FK7kxsCd2d950/4uPl80ALRMfdA="), (create, "POST", "uo5CV2z2uk+XBCjthqENArZnatM="),
                                     (more, "GET", "BWyV/Faj37+EEf/e5M/0hNnPnws="), (more, "POST", "FsPuribr7bAN1cxWaLwpEWF5OV8="),
                                     (refresh, "GET", "qkh6plv1XI/aNwY/Exbj9rvHwfU="),
                                     (refresh | {"SignatureType": ""}, "GET", "XoqfCnwcuUPj2ygxE9tq1/Kovw8=")):
            string, found = signatures.rpc(self.STS[1], method, given | {"Signature": "what is here does not count"})
            self.assertEqual(found, right)
            self.assertTrue(string.startswith(method + "&%2F&AccessKeyId%3DSTS."))

    def test_remote_call_by_headers(self):
        headers = {"host": "vod.cn-shanghai.aliyuncs.com", "x-acs-action": "CreateUploadVideo", "x-acs-version": "2017-03-21",
                   "x-acs-date": "2024-07-13T08:30:05Z", "x-acs-signature-nonce": "15215528852396c1-fixed-nonce",
                   "x-acs-content-sha256": signatures.NO_BODY, "x-acs-security-token": self.STS[2]}
        for query in (quote, lambda value: quote(value).replace("%20", "+")):
            wire = "&".join(f"{name}={query(value)}" for name, value in self.BUSINESS.items())
            found = signatures.acs3(self.STS[1], self.STS[0], "POST", signatures.pairs(wire), headers, list(headers), signatures.NO_BODY)
            self.assertTrue(found.endswith("Signature=12db25ddfb1e9b945bf274f3d19a0475110733680616b660540af79e22f560bd"))
            self.assertIn("SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-security-token;x-acs-signature-nonce;x-acs-version,",
                          found)

    def test_check_sum(self):
        for data, right in ((b"", 0), (b"a", 3675645893302102789), (b"123456789", 0x995DC9BBDF1939FA), (b"hello world", 5981764153023615706),
                            (bytes(1 << 20), 6947770692288575170), (b"1234567890", 12811388247244714686)):
            self.assertEqual(crc64(data), right)
        self.assertEqual(signatures.combine(6748440630437108969, 6285347597771850461, 5), 12811388247244714686)
        whole = pattern(300000)
        self.assertEqual(whole[:8].hex(), "00bb7733efab6622")
        self.assertEqual(crc64(whole), 4503234324560479078)
        sums = [crc64(whole[a:b]) for a, b in ((0, 102400), (102400, 204800), (204800, 300000))]
        self.assertEqual(sums, [5021391385786633429, 1821386245960610595, 10961634997677807843])
        two = signatures.combine(sums[0], sums[1], 102400)
        self.assertEqual(two, 10848372272289255017)
        self.assertEqual(signatures.combine(two, sums[2], 95200), 4503234324560479078)


# ------------------------------------------------------------------------------------------------ the vendor's clients


class Clients(Emulator):
    KEY = "sv/cam one+é視頻 ~*.mp4"

    def auths(self):
        sts = self.sts()
        return {"V1 long": oss2.Auth(*LONG), "V1 STS": oss2.StsAuth(*sts), "V4 long": oss2.AuthV4(*LONG),
                "V4 STS": oss2.StsAuth(*sts, auth_version="v4")}

    def bucket(self, auth, name="cameras"):
        return oss2.Bucket(auth, self.base, name, region="cn-shanghai")

    def test_older_client(self):
        data = os.urandom(350000)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "v.mp4")
            file.write_bytes(data)
            for name, auth in self.auths().items():
                with self.subTest(name):
                    bucket = self.bucket(auth)
                    put = bucket.put_object(self.KEY, data, headers={"x-oss-meta-cam": "Front Door", "Content-Type": "video/mp4"})
                    self.assertEqual((put.status, put.crc), (200, crc64(data)))
                    self.assertEqual(put.etag, hashlib.md5(data).hexdigest().upper())
                    self.assertEqual(bucket.get_object(self.KEY).read(), data)
                    self.assertEqual(bucket.get_object(self.KEY, byte_range=(10, 19)).read(), data[10:20])
                    head = bucket.head_object(self.KEY)
                    self.assertEqual((head.content_length, head.object_type, head.headers["x-oss-meta-cam"]), (len(data), "Normal", "Front Door"))
                    self.assertTrue(bucket.object_exists(self.KEY))
                    self.assertEqual([one.key for one in oss2.ObjectIteratorV2(bucket, prefix="sv/")], [self.KEY])
                    self.assertEqual([one.key for one in oss2.ObjectIterator(bucket, delimiter="/")], ["sv/"])
                    bucket.delete_object(self.KEY)
                    self.assertFalse(bucket.object_exists(self.KEY))
                    half = bucket.append_object(self.KEY, 0, data[:1000], init_crc=0)
                    self.assertEqual(bucket.append_object(self.KEY, half.next_position, data[1000:], init_crc=half.crc).crc, crc64(data))
                    with self.assertRaises(oss2.exceptions.PositionNotEqualToLength) as caught:
                        bucket.append_object(self.KEY, 1, data)
                    self.assertEqual(caught.exception.next_position, len(data))
                    bucket.delete_object(self.KEY)
                    oss2.resumable_upload(bucket, self.KEY, str(file), multipart_threshold=1, part_size=SMALL, num_threads=3,
                                          store=oss2.ResumableStore(root=folder))
                    found = self.control("objects")["cameras/" + self.KEY]
                    self.assertEqual((found["sha256"], found["type"]), (hashlib.sha256(data).hexdigest(), "Multipart"))
                    self.assertEqual(found["crc"], found["said_crc"])

    def test_older_client_by_hand(self):
        self.control("settings", {"page_size": 2})
        for name, auth in self.auths().items():
            with self.subTest(name):
                bucket = self.bucket(auth)
                upload = bucket.init_multipart_upload(self.KEY).upload_id
                given = []
                for n, data in enumerate([os.urandom(SMALL) for _ in range(4)] + [b"end"], 1):
                    found = bucket.upload_part(self.KEY, upload, n, data)
                    given.append(oss2.models.PartInfo(n, found.etag, size=len(data), part_crc=found.crc))
                self.faults({"do": "loose_xml", "times": 0})
                parts = list(oss2.PartIterator(bucket, self.KEY, upload, max_parts=3))
                self.assertEqual([(p.part_number, p.etag, p.size) for p in parts], [(p.part_number, p.etag, p.size) for p in given])
                self.assertEqual([u.key for u in oss2.MultipartUploadIterator(bucket, prefix="sv/")], [self.KEY])
                found = bucket.complete_multipart_upload(self.KEY, upload, parts)
                crc = 0
                for part in given:
                    crc = signatures.combine(crc, part.part_crc, part.size)
                self.assertEqual(found.crc, crc)
                self.faults()
                gone = bucket.init_multipart_upload(self.KEY).upload_id
                bucket.upload_part(self.KEY, gone, 1, b"x")
                bucket.abort_multipart_upload(self.KEY, gone)
                with self.assertRaises(oss2.exceptions.NoSuchUpload):
                    bucket.upload_part(self.KEY, gone, 2, b"x")
                self.assertEqual(self.control("uploads"), {})
        self.assertEqual(len(self.sent(operation="ListParts")), 4 * 3)

    def test_older_client_about_buckets(self):
        bucket = self.bucket(oss2.Auth(*LONG))
        self.assertEqual(bucket.get_bucket_info().location, "oss-cn-shanghai")
        self.assertEqual(bucket.get_bucket_location().location, "oss-cn-shanghai")
        with self.assertRaises(oss2.exceptions.NoSuchBucket):
            self.bucket(oss2.Auth(*LONG), "nowhere").put_object("a", b"x")

    def test_older_client_with_a_wrong_secret(self):
        for auth in (oss2.Auth(LONG[0], "wrong"), oss2.AuthV4(LONG[0], "wrong")):
            with self.assertRaises(oss2.exceptions.SignatureDoesNotMatch) as caught:
                self.bucket(auth).put_object(self.KEY, b"x")
            self.assertTrue(caught.exception.details["StringToSign"])

    def newer(self, version, who):
        config = oss_v2.config.load_default()
        config.credentials_provider = oss_v2.credentials.StaticCredentialsProvider(*who)
        config.region, config.endpoint, config.use_path_style, config.signature_version = "cn-shanghai", self.base, True, version
        return oss_v2.Client(config)

    def test_newer_client(self):
        data = os.urandom(700000)
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            sts = self.sts()
            for version in ("v1", "v4"):
                for who in (LONG, sts):
                    with self.subTest(version=version, token=len(who) > 2):
                        client = self.newer(version, who)
                        found = client.uploader().upload_file(oss_v2.PutObjectRequest(bucket="cameras", key=self.KEY), file.name,
                                                              part_size=SMALL * 2, parallel_num=3)
                        self.assertEqual(found.status_code, 200)
                        self.assertEqual(self.control("objects")["cameras/" + self.KEY]["md5"], hashlib.md5(data).hexdigest())
                        self.assertEqual(client.get_object(oss_v2.GetObjectRequest("cameras", self.KEY)).body.read(), data)
                        pages = client.list_objects_v2_paginator().iter_page(oss_v2.ListObjectsV2Request("cameras", prefix="sv/"))
                        self.assertEqual([one.key for page in pages for one in page.contents], [self.KEY])

    def test_newer_client_with_a_wrong_secret(self):
        for version in ("v1", "v4"):
            with self.assertRaises(oss_v2.exceptions.OperationError) as caught:
                self.newer(version, (LONG[0], "wrong")).put_object(oss_v2.PutObjectRequest("cameras", "a", body=b"x"))
            self.assertEqual(caught.exception.unwrap().code, "SignatureDoesNotMatch")

    # The video service

    def upload_to(self, found, data):
        """What an uploader does with the two blobs."""
        address, auth = (json.loads(base64.b64decode(found[name])) for name in ("UploadAddress", "UploadAuth"))
        store = oss2.StsAuth(auth["AccessKeyId"], auth["AccessKeySecret"], auth["SecurityToken"])
        bucket = oss2.Bucket(store, address["Endpoint"], address["Bucket"])
        bucket.put_object(address["FileName"], data)
        with self.assertRaises(oss2.exceptions.AccessDenied):
            bucket.put_object(address["FileName"] + "x", data)
        return address

    def modern(self, who):
        return VodClient(Config(access_key_id=who[0], access_key_secret=who[1], security_token=who[2] if len(who) > 2 else None,
                                endpoint=f"127.0.0.1:{self.port}", protocol="http"))

    def test_modern_video_client(self):
        for who in (LONG, self.sts()):
            reference = "job-" + uuid.uuid4().hex
            client = self.modern(who)
            made = client.create_upload_video(vod_models.CreateUploadVideoRequest(
                title="front door 視頻 * ~ (1)", file_name="cam one/a.MP4", file_size=5, tags="cam1,night", reference_id=reference)).body.to_map()
            address = self.upload_to(made, b"hello")
            self.assertTrue(address["FileName"].endswith(".MP4"))
            for wish in ({"video_id": made["VideoId"]}, {"reference_id": reference}):
                again = client.refresh_upload_video(vod_models.RefreshUploadVideoRequest(**wish)).body.to_map()
                self.assertEqual(again["VideoId"], made["VideoId"])
                self.assertEqual(self.upload_to(again, b"world"), address)
                self.assertNotEqual(again["UploadAuth"], made["UploadAuth"])
                info = client.get_mezzanine_info(vod_models.GetMezzanineInfoRequest(**wish)).body.mezzanine
                self.assertEqual((info.status, info.size, info.video_id), ("Normal", 5, made["VideoId"]))
            image = client.create_upload_image(vod_models.CreateUploadImageRequest(image_type="cover", image_ext="jpg")).body.to_map()
            wish = vod_models.GetImageInfoRequest(image_id=image["ImageId"])
            self.assertEqual(client.get_image_info(wish).body.image_info.status, "Uploading")
            self.assertTrue(self.upload_to(image, b"picture")["FileName"].endswith(".jpg"))
            info = client.get_image_info(wish).body.image_info
            self.assertEqual((info.status, info.mezzanine.file_size), ("Normal", "7"))
            with self.assertRaises(TeaException) as caught:
                client.create_upload_video(vod_models.CreateUploadVideoRequest(title="x", file_name="a.mp4", reference_id=reference))
            self.assertEqual(caught.exception.code, "InvalidParameter.ReferenceId")
        with self.assertRaises(TeaException) as caught:
            self.modern((LONG[0], "wrong")).refresh_upload_video(vod_models.RefreshUploadVideoRequest(video_id="x"))
        self.assertEqual(caught.exception.code, "SignatureDoesNotMatch")

    def classic(self, who):
        client = AcsClient(*who[:2], "cn-shanghai") if len(who) < 3 else AcsClient(region_id="cn-shanghai", credential=StsTokenCredential(*who))

        def call(kind, **given):
            request = getattr(kind, kind.__name__.rsplit(".", 1)[1])()
            request.set_accept_format("JSON")
            request.set_protocol_type("http")
            request.set_endpoint(f"127.0.0.1:{self.port}")
            for name, value in given.items():
                getattr(request, "set_" + name)(value)
            return json.loads(client.do_action_with_exception(request))

        return call

    def test_classic_video_client(self):
        for who in (LONG, self.sts()):
            call = self.classic(who)
            made = call(CreateUploadVideoRequest, Title="front door 視頻 * ~ (1)", FileName="cam one/a.mp4", FileSize=5, Tags="cam1,night")
            address = self.upload_to(made, b"hello")
            again = call(RefreshUploadVideoRequest, VideoId=made["VideoId"])
            self.assertEqual(self.upload_to(again, b"world"), address)
            self.upload_to(call(CreateUploadImageRequest, ImageType="default"), b"picture")
            self.assertTrue(self.control("videos")[made["VideoId"]]["uploaded"])
            self.assertEqual(self.control("videos")[made["VideoId"]]["refreshes_after_upload"], 1)
        with self.assertRaises(ServerException) as caught:
            self.classic((LONG[0], "wrong"))(RefreshUploadVideoRequest, VideoId="x")
        # Its own check tells a wrong secret from a wrong string by comparing the strings, so the string was right.
        self.assertEqual(caught.exception.get_error_code(), "InvalidAccessKeySecret")


# ------------------------------------------------------------------------------------------------ each rule by a raw request


class Rules(Emulator):
    def test_wrong_signature(self):
        for version, ec in ((1, "0002-00000040"), (4, "0002-00000201")):
            for who in (LONG, self.sts()):
                wrong = (who[0], who[1] + "x", *who[2:])
                said = self.refused(self.oss("PUT", "a b.mp4", body=b"x", who=wrong, version=version), 403, "SignatureDoesNotMatch", ec)
                string = said.findtext("StringToSign")
                self.assertTrue(string.startswith("PUT\n" if version == 1 else "OSS4-HMAC-SHA256\n"))
                self.assertEqual(bytes.fromhex(said.findtext("StringToSignBytes")), string.encode())
                self.assertEqual(said.findtext("OSSAccessKeyId"), who[0])
        self.assertEqual(self.control("objects"), {})

    def test_what_is_signed(self):
        """A header, a query and a key that were changed on the way."""
        def changed(version, target="/cameras/v.mp4?partNumber=1&uploadId=U", **more):
            headers = {"x-oss-meta-cam": "a", "Content-Type": "video/mp4"}
            request = HttpRequest("PUT", "http://x/cameras/v.mp4?partNumber=1&uploadId=U", headers=headers)
            context = SigningContext(product="oss", region="cn-shanghai", bucket="cameras", key="v.mp4", request=request,
                                     credentials=Credentials(*LONG))
            (signatures.SignerV1 if version == 1 else signatures.SignerV4)().sign(context)
            return self.raw("PUT", target, b"", dict(request.headers) | more)

        for version in (1, 4):
            self.refused(changed(version), 404, "NoSuchUpload", "0017-00000244")
            for change in ({"x-oss-meta-cam": "b"}, {"x-oss-meta-more": "b"}, {"Content-Type": "video/ts"}, {"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}):
                self.refused(changed(version, **change), 403, "SignatureDoesNotMatch")
            for target in ("/cameras/w.mp4?partNumber=1&uploadId=U", "/cameras/v.mp4?partNumber=2&uploadId=U", "/other/v.mp4?partNumber=1&uploadId=U"):
                self.refused(changed(version, target), 403, "SignatureDoesNotMatch")
        # The first scheme signs a list of names, the fourth all.
        more = "/cameras/v.mp4?partNumber=1&uploadId=U&max-parts=1"
        self.refused(changed(1, more), 404, "NoSuchUpload")
        self.refused(changed(4, more), 403, "SignatureDoesNotMatch")

    def test_spellings_of_a_path(self):
        key = "sv/a b+é.mp4"
        for version in (1, 4):
            for target, host in (("/cameras/sv/a%20b%2B%C3%A9.mp4", None), ("/cameras/sv%2Fa%20b%2b%c3%a9.mp4", None), ("/cameras/sv/a%20b+%C3%A9.mp4", None),
                                 ("/sv/a%20b%2B%C3%A9.mp4", f"cameras.localhost:{self.port}"), ("/sv/a%20b%2B%C3%A9.mp4", "cameras.oss-cn-shanghai.aliyuncs.com")):
                self.taken(self.oss("PUT", key, body=b"x", target=target, host=host, version=version))
                self.assertEqual(list(self.control("objects")), ["cameras/" + key])

    def test_unreadable_authorization(self):
        for value, status, code in ((None, 403, "AccessDenied"), ("Basic eDp5", 400, "InvalidArgument"), ("OSS nothing", 400, "InvalidArgument"),
                                    ("OSS4-HMAC-SHA256 Credential=a/b/c,Signature=0", 400, "InvalidArgument"),
                                    ("OSS4-HMAC-SHA256 Credential=a/20240101/cn-shanghai/oss/aliyun_v4_request", 400, "InvalidArgument")):
            answer = self.raw("PUT", "/cameras/a", b"x", {"Authorization": value, "Date": formatdate(usegmt=True)})
            self.refused(answer, status, code)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        head = f"OSS4-HMAC-SHA256 Credential={LONG[0]}/{stamp[:8]}/"
        both = {"x-oss-date": stamp, "x-oss-content-sha256": "UNSIGNED-PAYLOAD"}
        for rest, headers, ec in (("cn-shanghai/oss/aliyun_v4_request,Signature=0,AdditionalHeaders=", both, "0002-00000209"),
                                  ("cn-beijing/oss/aliyun_v4_request,Signature=0", both, None),
                                  ("cn-shanghai/oss/aliyun_v4_request,Signature=0", {"x-oss-date": stamp}, None),
                                  ("cn-shanghai/oss/aliyun_v4_request,Signature=0", {"x-oss-content-sha256": "UNSIGNED-PAYLOAD"}, None)):
            self.refused(self.raw("PUT", "/cameras/a", b"x", {"Authorization": head + rest} | headers), 400, "InvalidArgument", ec)
        for date in (None, "Sat, 13 Jul 2024 08:30:05 +0000", "Sat, 13 Jul 2024 8:30:05 GMT", "Fri, 13 Jul 2024 08:30:05 GMT", "2024-7-13T08:30:05Z"):
            self.refused(self.raw("PUT", "/cameras/a", b"x", {"Authorization": f"OSS {LONG[0]}:x", "Date": date}), 403, "AccessDenied")

    def test_spellings_of_the_date(self):
        """Signed well, and not as the scheme writes it."""
        now = time.gmtime()
        compact, iso = time.strftime(signatures.COMPACT, now), time.strftime(signatures.ISO, now)
        for name in ("date", "x-oss-date"):
            for date, status in ((time.strftime(signatures.HTTP, now), 200), (compact, 403), (iso, 403)):
                signature = signatures.oss_v1(LONG[1], "PUT", "cameras", "a", [], {name: date})[1]
                answer = self.raw("PUT", "/cameras/a", b"", {name: date, "Authorization": f"OSS {LONG[0]}:{signature}"})
                if status == 200:
                    self.taken(answer)
                else:
                    self.refused(answer, 403, "AccessDenied")
        for date, day in ((compact, compact[:8]), (compact, ""), (compact, compact[:4]), (compact, compact), (iso, iso[:10]), (iso, "")):
            headers = {"x-oss-date": date, "x-oss-content-sha256": "UNSIGNED-PAYLOAD"}
            signature = signatures.oss_v4(LONG[1], "PUT", "cameras", "a", [], headers, "cn-shanghai", day)[1]
            scope = f"{LONG[0]}/{day}/cn-shanghai/oss/aliyun_v4_request"
            answer = self.raw("PUT", "/cameras/a", b"", headers | {"Authorization": f"OSS4-HMAC-SHA256 Credential={scope},Signature={signature}"})
            if (date, day) == (compact, compact[:8]):
                self.taken(answer)
            else:
                self.refused(answer, 400, "InvalidArgument")

    def test_further_signed_headers(self):
        """With a space after the comma, the fields in another order, and headers signed on top."""
        request = HttpRequest("PUT", "http://x/cameras/a", headers={"Host": f"127.0.0.1:{self.port}", "Content-Length": "1"})
        context = SigningContext(product="oss", region="cn-shanghai", bucket="cameras", key="a", request=request, credentials=Credentials(*LONG),
                                 additional_headers={"host", "content-length"})
        signatures.SignerV4().sign(context)
        headers = dict(request.headers)
        scheme, _, fields = headers["Authorization"].partition(" ")
        self.assertIn("AdditionalHeaders=content-length;host", fields)
        headers["Authorization"] = scheme + " " + ", ".join(reversed(fields.split(",")))
        self.taken(self.raw("PUT", "/cameras/a", b"x", headers))
        self.refused(self.raw("PUT", "/cameras/a", b"xy", headers | {"Content-Length": "2"}), 403, "SignatureDoesNotMatch")

    def test_keys(self):
        for version in (1, 4):
            more = {"version": version}
            self.refused(self.oss("PUT", "a", who=("LTAInobody", "x"), **more), 403, "InvalidAccessKeyId")
            who = self.sts()
            self.refused(self.oss("PUT", "a", who=who[:2], **more), 403, "InvalidAccessKeyId")
            self.refused(self.oss("PUT", "a", who=(*who[:2], who[2] + "x"), **more), 403, "InvalidSecurityToken", "0002-00000006")
            self.refused(self.oss("PUT", "a", who=(*who[:2], self.sts()[2]), **more), 403, "InvalidSecurityToken")
            self.refused(self.oss("PUT", "a", who=(*LONG, "token"), **more), 403, "InvalidSecurityToken")
            self.taken(self.oss("PUT", "a", who=who, **more))
            self.control("expire", {"id": who[0]})
            self.refused(self.oss("PUT", "a", who=who, **more), 403, "SecurityTokenExpired", "0002-00000007")
            short = self.sts(lifetime=1)
            self.taken(self.oss("PUT", "a", who=short, **more))
            time.sleep(1.1)
            self.refused(self.oss("PUT", "a", who=short, **more), 403, "SecurityTokenExpired")
            one = self.sts(bucket="cameras", key="sv/a.mp4")
            self.taken(self.oss("PUT", "sv/a.mp4", who=one, **more))
            self.refused(self.oss("PUT", "sv/b.mp4", who=one, **more), 403, "AccessDenied")
            self.refused(self.oss("GET", "", "uploads", who=one, target="/cameras/?uploads", **more), 403, "AccessDenied")
        self.control("keys", {"id": "LTAIasleep", "secret": "x", "active": False})
        self.refused(self.oss("PUT", "a", who=("LTAIasleep", "x")), 403, "InvalidAccessKeyId")
        self.assertFalse(self.control("keys")["LTAIasleep"]["active"])
        self.assertLess(self.control("keys")[short[0]]["left"], 0)

    def test_clock(self):
        self.taken(self.oss("PUT", "a", when=time.time() - 14 * 60, version=1))
        for away in (-16 * 60, 16 * 60):
            self.refused(self.oss("PUT", "a", when=time.time() + away, version=1), 403, "RequestTimeTooSkewed", "0002-00000504")
            self.control("settings", {"skew": away})
            answer = self.oss("PUT", "a", version=1)
            self.refused(answer, 403, "RequestTimeTooSkewed")
            server = signatures.moment(answer.getheader("Date"))
            self.assertAlmostEqual(server - time.time(), away, delta=5)
            self.taken(self.oss("PUT", "a", when=server, version=1))
            self.taken(self.oss("PUT", "a", when=server))
            self.control("settings", {"skew": 0})
        said = self.refused(self.oss("PUT", "a", when=time.time() - 30 * 3600), 400, "InvalidArgument")
        self.assertEqual(said.findtext("Message"), "Invalid signing date in Authorization header.")
        # On the same day of UTC: another one is told in other words.
        away = 3600 if time.gmtime().tm_hour < 23 else -3600
        self.faults({"do": "skew_in_words"}, {"do": "skew", "value": away})
        self.refused(self.oss("PUT", "a"), 400, "InvalidArgument")
        self.refused(self.oss("PUT", "a"), 403, "RequestTimeTooSkewed")

    def test_beginning(self):
        self.refused(self.oss("POST", "v.mp4", "uploads", b"x"), 400, "InvalidArgument")
        self.assertEqual(self.control("uploads"), {})
        said = ElementTree.fromstring(self.taken(self.oss("POST", "v.mp4", "uploads", headers={"Content-Type": "video/mp4"})).data)
        self.assertEqual(said.tag, "InitiateMultipartUploadResult")
        self.assertEqual({one.tag: one.text for one in said}, {"Bucket": "cameras", "Key": "v.mp4", "UploadId": next(iter(self.control("uploads")))})

    def test_unknown_upload(self):
        upload = self.whole()
        gone = [("other.mp4", upload), ("v.mp4", "0" * 32)]
        aborted = self.start()
        self.taken(self.oss("DELETE", "v.mp4", "uploadId=" + aborted), 204)
        self.taken(self.finish(upload, list(enumerate(PARTS, 1))))
        for key, id in gone + [("v.mp4", aborted), ("v.mp4", upload)]:
            for answer in (self.part(id, 1, b"x", key), self.finish(id, [(1, b"x")], key), self.oss("GET", key, "uploadId=" + id),
                           self.oss("DELETE", key, "uploadId=" + id)):
                self.refused(answer, 404, "NoSuchUpload", "0017-00000244")

    def test_part_numbers(self):
        upload = self.start()
        for n in ("0", "10001", "-1", "x", "", quote("１")):
            self.refused(self.part(upload, n, b"x"), 400, "InvalidArgument")
        self.refused(self.oss("PUT", "v.mp4", "uploadId=" + upload, b"x"), 400, "InvalidArgument")
        for n in (1, 10000):
            self.taken(self.part(upload, n, b"x"))
        self.refused(self.finish(upload, [(0, b"x")]), 400, "InvalidArgument")

    def test_part(self):
        upload, data = self.start(), os.urandom(5000)
        md5 = hashlib.md5(data)
        answer = self.taken(self.part(upload, 1, data, headers={"Content-MD5": base64.b64encode(md5.digest()).decode()}))
        self.assertEqual(answer.getheader("ETag"), f'"{md5.hexdigest().upper()}"')
        self.assertEqual(answer.getheader("x-oss-hash-crc64ecma"), str(crc64(data)))
        self.assertEqual(answer.getheader("Content-MD5"), base64.b64encode(md5.digest()).decode())
        for wrong in ("1B2M2Y8AsgTpgAmY7PhCfg==", "none", md5.hexdigest()):
            self.refused(self.part(upload, 2, data, headers={"Content-MD5": wrong}), 400, "InvalidDigest")
        self.assertEqual(list(self.control("uploads")[upload]["parts"]), ["1"])
        self.taken(self.part(upload, 1, b"other"))
        self.assertEqual(self.control("uploads")[upload]["parts"]["1"]["md5"], hashlib.md5(b"other").hexdigest())
        self.assertEqual(len(os.listdir(self.folder.name)), 1)
        for limit in ("819199", "838860801", "x"):
            self.refused(self.part(upload, 2, b"x", headers={"x-oss-traffic-limit": limit}), 400, "InvalidArgument", "0004-00000502")
        begun = time.monotonic()
        self.taken(self.part(upload, 2, bytes(60000), headers={"x-oss-traffic-limit": "819200"}))
        self.assertGreater(time.monotonic() - begun, 0.5)

    def half(self, target, length, data, headers, shut=True):
        """A request with less of a body than it says; its answer, if any."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as line:
            head = "".join(f"{name}: {value}\r\n" for name, value in ({"Host": "127.0.0.1", "Content-Length": length} | headers).items())
            line.sendall(f"PUT {target} HTTP/1.1\r\n{head}\r\n".encode() + data)
            if shut:
                line.shutdown(socket.SHUT_WR)
            answer = b""
            while block := line.recv(65536):
                answer += block
            return answer

    def signed(self, method, target, bucket, key, headers=None):
        request = HttpRequest(method, "http://x" + target, headers=headers or {})
        context = SigningContext(product="oss", region="cn-shanghai", bucket=bucket, key=key, request=request, credentials=Credentials(*LONG))
        signatures.SignerV4().sign(context)
        return dict(request.headers)

    def test_short_body(self):
        upload = self.start()
        target = f"/cameras/v.mp4?partNumber=1&uploadId={upload}"
        answer = self.half(target, 1000, b"x" * 400, self.signed("PUT", target, "cameras", "v.mp4"))
        self.assertTrue(answer.startswith(b"HTTP/1.1 400") and b"InvalidDigest" in answer)
        self.assertEqual(self.control("uploads")[upload]["parts"], {})
        self.assertEqual((self.sent(operation="UploadPart")[0]["received"], os.listdir(self.folder.name)), (400, []))
        self.control("settings", {"body_timeout": 0.3})
        answer = self.half(target, 1000, b"x" * 400, self.signed("PUT", target, "cameras", "v.mp4"), shut=False)
        self.assertTrue(answer.startswith(b"HTTP/1.1 400") and b"RequestTimeout" in answer)
        self.control("settings", {"body_timeout": 60})

    def test_headers_that_nobody_can_read(self):
        headers = self.signed("PUT", "/cameras/a", "cameras", "a")
        answer = self.half("/cameras/a", 1, b"x", headers | {"content-type": "a", "Content-Type": "b", "Connection": "close"})
        self.assertTrue(answer.startswith(b"HTTP/1.1 400") and b"InvalidArgument" in answer)
        answer = self.raw("PUT", "/cameras/a", b"1\r\nx\r\n0\r\n\r\n", headers | {"Content-Length": None, "Transfer-Encoding": "chunked"})
        self.refused(answer, 411, "MissingContentLength")

    def test_expect_continue(self):
        """A body that was announced is asked for only when it is wanted."""
        target = "/cameras/a"
        for wrong in (False, True):
            headers = self.signed("PUT", target, "cameras", "b" if wrong else "a") | {"Expect": "100-continue", "Content-Length": "5"}
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as line:
                head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                line.sendall(f"PUT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n".encode())
                first = line.recv(65536)
                if wrong:
                    self.assertTrue(first.startswith(b"HTTP/1.1 403"))
                else:
                    self.assertTrue(first.startswith(b"HTTP/1.1 100 Continue\r\n\r\n"))
                    line.sendall(b"hello")
                    self.assertTrue(line.recv(65536).startswith(b"HTTP/1.1 200"))

    def test_complete(self):
        upload = self.whole()
        first, second, last = PARTS
        right = [(1, first), (2, second), (3, last)]
        for wrong in ([(1, first), (4, last)], [(1, second), (2, second)], [(1, first), (2, "0" * 32)]):
            self.refused(self.finish(upload, wrong), 400, "InvalidPart")
        for wrong in ([(2, second), (1, first)], [(1, first), (1, first)]):
            self.refused(self.finish(upload, wrong), 400, "InvalidPartOrder", "0042-00000209")
        self.refused(self.finish(upload, [(3, last), (2, second)]), 400, "InvalidPartOrder")
        part = b"<Part><PartNumber>1</PartNumber><ETag>x</ETag></Part>"
        for wrong in (b"", b"<Complete", b"<Other>" + part + b"</Other>", b"<CompleteMultipartUpload/>",
                      b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>",
                      b"<CompleteMultipartUpload><Part><PartNumber>x</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>",
                      b"<CompleteMultipartUpload><Part><PartNumber>+1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>",
                      b"<CompleteMultipartUpload><Part><PartNumber>1_0</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>",
                      "<CompleteMultipartUpload><Part><PartNumber>１</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>".encode(),
                      b"<CompleteMultipartUpload><Part><ETag>x</ETag></Part></CompleteMultipartUpload>",
                      b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag></ETag></Part></CompleteMultipartUpload>"):
            self.refused(self.finish(upload, wrong), 400, "MalformedXML")
        self.refused(self.finish(upload, right, headers={"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}), 400, "InvalidDigest")
        self.taken(self.part(upload, 7, b"small"))
        self.taken(self.part(upload, 8, b"after it"))
        self.refused(self.finish(upload, right + [(7, b"small"), (8, b"after it")]), 400, "EntityTooSmall", "0042-00000213")
        body = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>&quot;{hashlib.md5(data).hexdigest()}&quot;</ETag></Part>\n" for n, data in right)
        answer = self.taken(self.finish(upload, f'<?xml version="1.0"?>\n<CompleteMultipartUpload>{body}</CompleteMultipartUpload>'.encode()))
        said = ElementTree.fromstring(answer.data)
        self.assertEqual((said.tag, said.findtext("Bucket"), said.findtext("Key")), ("CompleteMultipartUploadResult", "cameras", "v.mp4"))
        self.assertEqual(said.findtext("ETag"), answer.getheader("ETag"))
        self.assertTrue(answer.getheader("ETag").endswith('-3"'))
        whole = b"".join(PARTS)
        self.assertEqual(answer.getheader("x-oss-hash-crc64ecma"), str(crc64(whole)))
        self.assertEqual(self.control("objects")["cameras/v.mp4"]["sha256"], hashlib.sha256(whole).hexdigest())
        self.assertEqual((self.control("uploads"), len(os.listdir(self.folder.name))), ({}, 1))
        head = self.taken(self.oss("HEAD", "v.mp4"))
        self.assertEqual((head.getheader("Content-Length"), head.getheader("x-oss-object-type")), (str(len(whole)), "Multipart"))

    def test_complete_twice_at_once(self):
        upload, answers = self.whole(), []
        threads = [threading.Thread(target=lambda: answers.append(self.finish(upload, list(enumerate(PARTS, 1))))) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(sorted(one.status for one in answers), [200, 404, 404, 404])

    def test_part_after_its_upload(self):
        """A part on its way when the upload ends is nobody's."""
        upload = self.whole()
        self.faults({"do": "slow_read", "rate": 1000000, "match": {"part": 4}})
        late = []
        thread = threading.Thread(target=lambda: late.append(self.part(upload, 4, bytes(400000))))
        thread.start()
        time.sleep(0.2)
        self.taken(self.finish(upload, list(enumerate(PARTS, 1))))
        thread.join()
        self.refused(late[0], 404, "NoSuchUpload")
        self.assertEqual(len(os.listdir(self.folder.name)), 1)

    def test_complete_all(self):
        upload = self.whole()
        self.refused(self.finish(upload, b"<CompleteMultipartUpload/>", headers={"x-oss-complete-all": "yes"}), 400, "InvalidArgument")
        self.taken(self.finish(upload, b"", headers={"x-oss-complete-all": "yes"}))
        self.assertEqual(self.control("objects")["cameras/v.mp4"]["size"], sum(map(len, PARTS)))

    def test_overwriting(self):
        never = {"x-oss-forbid-overwrite": "true"}
        self.taken(self.oss("PUT", "v.mp4", body=b"first", headers=never))
        self.refused(self.oss("PUT", "v.mp4", body=b"second", headers=never), 409, "FileAlreadyExists")
        self.refused(self.oss("POST", "v.mp4", "uploads", headers=never), 409, "FileAlreadyExists")
        upload = self.whole()
        self.refused(self.finish(upload, list(enumerate(PARTS, 1)), headers=never), 409, "FileAlreadyExists")
        self.assertEqual(self.control("objects")["cameras/v.mp4"]["md5"], hashlib.md5(b"first").hexdigest())
        self.taken(self.finish(upload, list(enumerate(PARTS, 1)), headers={"x-oss-forbid-overwrite": "false"}))
        self.assertEqual(self.control("objects")["cameras/v.mp4"]["type"], "Multipart")

    def test_appending(self):
        def append(body, at, **more):
            return self.oss("POST", "log.mp4", f"append&position={at}", body, **more)

        data = PARTS[0]
        self.refused(append(b"x", 1), 409, "PositionNotEqualToLength")
        for wrong in ("", "-1", "x"):
            self.refused(append(b"x", wrong), 400, "InvalidArgument")
        self.refused(append(data, 0, headers={"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}), 400, "InvalidDigest")
        self.assertEqual((self.control("objects"), os.listdir(self.folder.name)), ({}, []))
        answer = self.taken(append(data, 0, headers={"Content-Type": "video/mp4"}))
        self.assertEqual([answer.getheader(name) for name in ("x-oss-next-append-position", "x-oss-hash-crc64ecma")], [str(SMALL), str(crc64(data))])
        answer = append(b"more", 0)
        self.refused(answer, 409, "PositionNotEqualToLength")
        self.assertEqual(answer.getheader("x-oss-next-append-position"), str(SMALL))
        answer = self.taken(append(b"more", SMALL, version=1))
        self.assertEqual([answer.getheader(name) for name in ("x-oss-next-append-position", "x-oss-hash-crc64ecma")],
                         [str(SMALL + 4), str(crc64(data + b"more"))])
        head = self.taken(self.oss("HEAD", "log.mp4"))
        self.assertEqual([head.getheader(name) for name in ("x-oss-object-type", "Content-Type", "Content-Length")],
                         ["Appendable", "video/mp4", str(SMALL + 4)])
        self.taken(self.oss("PUT", "a", body=b"x"))
        self.refused(self.oss("POST", "a", "append&position=1", b"x"), 409, "ObjectNotAppendable")
        self.assertEqual(len(os.listdir(self.folder.name)), 2)

    def test_list_of_parts(self):
        upload = self.start()
        data = {n: os.urandom(10) for n in (1, 2, 5, 9, 10000)}
        for n, one in data.items():
            self.taken(self.part(upload, n, one))

        def pages(query=""):
            marker = 0
            while True:
                said = ElementTree.fromstring(self.taken(self.oss("GET", "v.mp4", f"uploadId={upload}&part-number-marker={marker}{query}")).data)
                self.assertEqual(said.findtext("PartNumberMarker"), str(marker))
                yield said, [int(part.findtext("PartNumber")) for part in said.iter("Part")]
                marker = int(said.findtext("NextPartNumberMarker"))
                if said.findtext("IsTruncated") == "false":
                    return

        self.assertEqual([found for _, found in pages("&max-parts=2")], [[1, 2], [5, 9], [10000]])
        self.control("faults", [{"do": "page_size", "value": 2}])
        self.assertEqual([found for _, found in pages()], [[1, 2], [5, 9], [10000]])
        self.control("settings", {"page_size": 1000})
        [(said, found)] = pages()
        self.assertEqual((found, said.findtext("MaxParts")), (sorted(data), "1000"))
        for part in said.iter("Part"):
            one = data[int(part.findtext("PartNumber"))]
            self.assertEqual([part.findtext(name) for name in ("ETag", "Size", "HashCrc64ecma")],
                             [f'"{hashlib.md5(one).hexdigest().upper()}"', "10", str(crc64(one))])
        for wrong in ("max-parts=0", "max-parts=1001", "max-parts=x", "part-number-marker=-1"):
            self.refused(self.oss("GET", "v.mp4", f"uploadId={upload}&{wrong}"), 400, "InvalidArgument")

    def test_lists_of_a_bucket(self):
        def listing(query):
            return ElementTree.fromstring(self.taken(self.oss("GET", "", query, target="/cameras/?" + query)).data)

        keys = ["a b.mp4", "sv/1+é.mp4", "sv/2.mp4", "w&<>.mp4"]
        for key in keys:
            self.taken(self.oss("PUT", key, body=b"x"))
        ids = [self.start(key) for key in keys for _ in range(2)]
        found, token = [], ""
        while True:
            said = listing("encoding-type=url&list-type=2&max-keys=1" + (f"&continuation-token={quote(token, safe='')}" if token else ""))
            found += [one.findtext("Key") for one in said.iter("Contents")]
            token = said.findtext("NextContinuationToken")
            if not token:
                break
        self.assertEqual(found, [quote(key) for key in keys])
        said = listing("delimiter=%2F&list-type=2")
        self.assertEqual([one.findtext("Prefix") for one in said.iter("CommonPrefixes")], ["sv/"])
        self.assertEqual([one.findtext("Key") for one in said.iter("Contents")], [keys[0], keys[3]])
        found, marker, marker_id = [], "", ""
        while True:
            said = listing(f"key-marker={quote(marker, safe='')}&max-uploads=3&upload-id-marker={marker_id}&uploads")
            found += [one.findtext("UploadId") for one in said.iter("Upload")]
            marker, marker_id = said.findtext("NextKeyMarker"), said.findtext("NextUploadIdMarker")
            if said.findtext("IsTruncated") == "false":
                break
        self.assertEqual((len(found), set(found)), (8, set(ids)))
        self.assertEqual(len(list(listing("prefix=sv%2F&uploads").iter("Upload"))), 4)

    def test_kept_headers(self):
        given = {"Content-Type": "video/mp4", "x-oss-meta-cam": "Front Door", "x-oss-storage-class": "IA",
                 "x-oss-server-side-encryption": "AES256", "x-oss-object-acl": "private", "x-oss-tagging": "a=1&b=2"}
        self.taken(self.oss("PUT", "v.mp4", body=b"x", headers=given))
        kept = {name.lower(): value for name, value in given.items()}
        self.assertEqual(self.control("objects")["cameras/v.mp4"]["headers"], kept)
        head = self.taken(self.oss("HEAD", "v.mp4"))
        self.assertEqual((head.getheader("x-oss-storage-class"), head.getheader("x-oss-tagging-count"), head.getheader("x-oss-meta-cam")),
                         ("IA", "2", "Front Door"))
        self.assertEqual((head.getheader("Content-Type"), head.getheader("Content-Length")), ("video/mp4", "1"))
        self.assertTrue(head.getheader("Last-Modified"))
        upload = self.start(headers=given)
        note = base64.b64encode(b'{"Vod":{"Title":"x"}}').decode()
        self.taken(self.part(upload, 1, b"x"))
        self.taken(self.finish(upload, [(1, b"x")], headers={"x-oss-notification": note, "Content-Type": "application/xml"}))
        self.assertEqual(self.control("objects")["cameras/v.mp4"]["headers"], kept | {"x-oss-notification": note})
        for name, wrong in (("x-oss-storage-class", "Cheap"), ("x-oss-object-acl", "all"), ("x-oss-callback", "e30="), ("x-oss-callback", "*"),
                            ("x-oss-notification", "x"), ("x-oss-forbid-overwrite", "1"), ("x-oss-server-side-encryption", "x")):
            self.refused(self.oss("PUT", "w.mp4", body=b"x", headers={name: wrong}), 400, "InvalidArgument")
        self.refused(self.oss("PUT", "w.mp4", body=b"x", headers={"x-oss-tagging": "&".join(f"t{n}=1" for n in range(11))}), 400, "InvalidTag")

    def test_places(self):
        self.refused(self.oss("PUT", "a", bucket="nowhere"), 404, "NoSuchBucket")
        self.control("buckets", {"name": "nowhere"})
        self.taken(self.oss("PUT", "a", bucket="nowhere"))
        self.refused(self.oss("GET", "missing"), 404, "NoSuchKey")
        head = self.oss("HEAD", "missing")
        said = ElementTree.fromstring(base64.b64decode(head.getheader("x-oss-err")))
        self.assertEqual((head.status, head.data, said.findtext("Code")), (404, b"", "NoSuchKey"))
        self.taken(self.oss("DELETE", "missing"), 204)
        for key in ("/a", "\\a", "é" * 512):
            self.refused(self.oss("PUT", key, body=b"x"), 400, "InvalidObjectName")
        self.refused(self.oss("PUT", "é.mp4", body=b"x", target="/cameras/%E9.mp4"), 400, "InvalidObjectName")
        self.taken(self.oss("PUT", "é" * 511, body=b"x"))
        self.refused(self.oss("PUT", "a", headers={"Content-Length": str((5 << 30) + 1), "Expect": "100-continue"}), 400, "EntityTooLarge")
        self.refused(self.oss("PUT", "a", headers={"Content-Length": None}), 411, "MissingContentLength")
        self.refused(self.oss("POST", "a", "restore"), 501, "NotImplemented")
        self.control("settings", {"path_style": False})
        self.refused(self.oss("PUT", "a"), 403, "SecondLevelDomainForbidden")
        self.taken(self.oss("PUT", "a", target="/a", host=f"cameras.localhost:{self.port}"))

    def test_record(self):
        who = self.sts()
        self.control("forget", ["record"])
        upload = self.start(who=who)
        for n in (1, 2):
            self.part(upload, n, b"12345", who=who, version=1)
        self.assertEqual(len(self.sent(operation="InitiateMultipartUpload")), 1)
        self.assertEqual([(one["part"], one["length"], one["received"], one["status"], one["signer"]) for one in self.sent(operation="UploadPart")],
                         [("1", 5, 5, 200, who[0]), ("2", 5, 5, 200, who[0])])
        nonce = self.vod({"Action": "RefreshUploadVideo", "VideoId": "x"}, who=who)
        self.assertEqual(nonce.status, 404)
        all_of = json.dumps(self.control("record"))
        for secret in who[1:]:
            self.assertNotIn(secret, all_of)
            self.assertNotIn(quote(secret, safe=""), all_of)
        self.assertIn('OSS4-HMAC-SHA256 Credential=', all_of)
        self.assertIn(f"OSS {who[0]}:***", all_of)
        self.assertNotRegex(all_of, r"Signature=[^*]")

    # The video service

    def vod(self, given, who=LONG, method="GET", spoil=None, when=None, **more):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() if when is None else when))
        all_of = {"Format": "JSON", "Version": "2017-03-21", "AccessKeyId": who[0], "SignatureMethod": "HMAC-SHA1", "SignatureVersion": "1.0",
                  "SignatureNonce": uuid.uuid4().hex, "Timestamp": stamp} | ({"SecurityToken": who[2]} if len(who) > 2 else {}) | given
        all_of = {name: value for name, value in all_of.items() if value is not None}
        all_of["Signature"] = spoil or Utils.get_rpcsignature(all_of, method, who[1])
        return self.raw(method, "/?" + urlencode(all_of, quote_via=quote), **more)

    def acs3(self, given, who=LONG, action="CreateUploadVideo", without=(), wrong=None, when=None, nonce=None, change=None, spell=None):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() if when is None else when))
        headers = {"host": f"127.0.0.1:{self.port}", "x-acs-action": action, "x-acs-version": "2017-03-21", "x-acs-date": stamp,
                   "x-acs-signature-nonce": nonce or uuid.uuid4().hex, "x-acs-content-sha256": signatures.NO_BODY}
        headers |= {"x-acs-security-token": who[2]} if len(who) > 2 else {}
        names = [name for name in headers if name not in without]
        authorization = signatures.acs3(who[1], who[0], "POST", list(given.items()), headers, names, signatures.NO_BODY)
        if spell:
            authorization = authorization.replace(";".join(sorted(names)), ";".join(spell(sorted(names))))
        del headers["host"]  # That is sent anyway.
        return self.raw("POST", "/?" + urlencode(given), headers=headers | {"Authorization": wrong or authorization} | (change or {}))

    def said(self, answer, status, code):
        found = json.loads(answer.data)
        self.assertEqual((answer.status, found["Code"]), (status, code), found)
        self.assertTrue(found["RequestId"] and found["Message"])
        return found

    VIDEO = {"Action": "CreateUploadVideo", "Title": "front door", "FileName": "a.mp4"}

    def test_calls_by_query(self):
        for method in ("GET", "POST"):
            made = json.loads(self.vod(self.VIDEO, method=method).data)
            self.assertTrue(made["VideoId"] and made["RequestId"])
            self.said(self.vod(self.VIDEO, method=method, who=(LONG[0], "wrong")), 400, "SignatureDoesNotMatch")
        for method in ("PUT", "DELETE"):
            self.said(self.vod(self.VIDEO, method=method), 405, "UnsupportedHTTPMethod")
        self.said(self.vod(self.VIDEO, spoil="x" * 27 + "="), 400, "SignatureDoesNotMatch")
        again = {"SignatureNonce": "once only"} | self.VIDEO
        self.assertEqual(self.vod(again).status, 200)
        self.said(self.vod(again), 400, "SignatureNonceUsed")
        for away in (-16 * 60, 16 * 60):
            self.said(self.vod(self.VIDEO, when=time.time() + away), 400, "InvalidTimeStamp.Expired")
        self.assertEqual(self.vod(self.VIDEO, when=time.time() - 14 * 60).status, 200)
        for wrong in ("2024-07-13 08:30:05", formatdate(usegmt=True), "20240713T083005Z"):
            self.said(self.vod(self.VIDEO | {"Timestamp": wrong}), 400, "InvalidTimeStamp.Format")
        for name in ("Version", "SignatureNonce", "Timestamp", "SignatureMethod", "SignatureVersion", "AccessKeyId"):
            self.said(self.vod(self.VIDEO | {name: None}), 400, "MissingParameter")
        self.said(self.vod({"Action": "DeleteVideo"}), 404, "InvalidAction.NotFound")
        self.said(self.vod(self.VIDEO | {"Version": "2016-01-01"}), 400, "InvalidVersion")
        found = ElementTree.fromstring(self.vod(self.VIDEO | {"Format": "XML"}).data)
        self.assertTrue(found.tag == "CreateUploadVideoResponse" and found.findtext("VideoId"))

    def test_call_with_a_form(self):
        """What a POST has in its body is signed as if it were in the query."""
        form = {"Title": "front door é", "FileName": "a.mp4"}
        common = {"Action": "CreateUploadVideo", "Format": "JSON", "Version": "2017-03-21", "AccessKeyId": LONG[0], "SignatureMethod": "HMAC-SHA1",
                  "SignatureVersion": "1.0", "SignatureNonce": uuid.uuid4().hex, "Timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        common["Signature"] = Utils.get_rpcsignature(common | form, "POST", LONG[1])
        target, kind = "/?" + urlencode(common), {"Content-Type": "application/x-www-form-urlencoded"}
        self.said(self.raw("POST", target, urlencode(form | {"Title": "other"}).encode(), kind), 400, "SignatureDoesNotMatch")
        self.assertTrue(json.loads(self.raw("POST", target, urlencode(form).encode(), kind).data)["VideoId"])

    def test_calls_by_headers(self):
        given = {"Title": "front door * ~ é", "FileName": "a.mp4"}
        made = json.loads(self.acs3(given).data)
        self.assertTrue(made["VideoId"])
        self.said(self.acs3(given, who=(LONG[0], "wrong")), 400, "SignatureDoesNotMatch")
        self.said(self.acs3(given, without=("host",)), 400, "SignatureDoesNotMatch")
        self.said(self.acs3(given, without=("x-acs-action",)), 400, "SignatureDoesNotMatch")
        for spell in (lambda names: names[::-1], lambda names: names + names[-1:], lambda names: [name.upper() for name in names]):
            self.said(self.acs3(given, spell=spell), 400, "SignatureDoesNotMatch")
        self.said(self.acs3(given, change={"x-acs-version": "2016-01-01"}), 400, "SignatureDoesNotMatch")
        self.said(self.acs3(given, change={"x-acs-content-sha256": "0" * 64}), 400, "SignatureDoesNotMatch")
        self.said(self.acs3(given, change={"x-acs-action": "RefreshUploadVideo"}), 400, "SignatureDoesNotMatch")
        self.said(self.acs3(given, wrong="ACS3-HMAC-SHA256 nothing"), 400, "MissingParameter")
        self.assertEqual(self.acs3(given, nonce="only once").status, 200)
        self.said(self.acs3(given, nonce="only once"), 400, "SignatureNonceUsed")
        self.said(self.acs3(given, when=time.time() - 16 * 60), 400, "InvalidTimeStamp.Expired")
        self.assertEqual(self.acs3(given, who=self.sts()).status, 200)

    def test_keys_of_calls(self):
        def both(who, status, code):
            self.said(self.vod(self.VIDEO, who=who), status, code)
            self.said(self.acs3({"Title": "x", "FileName": "a.mp4"}, who=who), status, code)

        sts = self.sts()
        both(("LTAInobody", "x"), 404, "InvalidAccessKeyId.NotFound")
        both(sts[:2], 404, "InvalidAccessKeyId.NotFound")
        both((*sts[:2], "other"), 400, "InvalidSecurityToken.Malformed")
        both((*sts[:2], self.sts()[2]), 400, "InvalidSecurityToken.MismatchWithAccessKey")
        both(self.sts(services=["oss"]), 403, "Forbidden.RAM")
        self.control("expire", {"id": sts[0]})
        both(sts, 400, "InvalidSecurityToken.Expired")
        self.control("keys", {"id": "LTAIidle", "secret": "x", "active": False})
        both(("LTAIidle", "x"), 400, "InvalidAccessKeyId.Inactive")

    def test_values_of_calls(self):
        def wrong(code, **given):
            self.said(self.vod(self.VIDEO | given), 400, code)

        for name in ("Title", "FileName"):
            wrong("MissingParameter", **{name: None})
            wrong("MissingParameter", **{name: ""})
        for name in ("a", "a.", ".mp4", "a.txt", "a.mp4/b", "a.mp4.exe"):
            wrong("InvalidParameter.FileName", FileName=name)
        for given in ({"Title": "é" * 129}, {"Description": "x" * 1025}, {"FileSize": "x"}, {"FileSize": "-1"}, {"CateId": "a"},
                      {"Tags": ",".join("abcdefghijklmnopq")}, {"Tags": "x" * 33}, {"CoverURL": "cover.jpg"}, {"UserData": "text"},
                      {"ReferenceId": "short"}, {"ReferenceId": "x" * 65}, {"ReferenceId": "with space"}, {"AppId": "mine"}):
            wrong("InvalidParameter", **given)
        for given in ({"Title": "é" * 128}, {"FileName": "C:\\cams\\A.MP4"}, {"FileName": "/a/b.Wav"}, {"Tags": ",".join("abcdefghijklmnop")},
                      {"ReferenceId": "job-_1"}, {"UserData": '{"Extend":{"a":"b"}}'}, {"TranscodeMode": "NoTranscode"}, {"Description": "x" * 1024}):
            self.assertEqual(self.vod(self.VIDEO | given).status, 200, given)
        wrong("InvalidParameter.ReferenceId", ReferenceId="job-_1")
        self.said(self.vod({"Action": "RefreshUploadVideo"}), 400, "MissingParameter")
        self.said(self.vod({"Action": "RefreshUploadVideo", "VideoId": "0" * 32}), 404, "InvalidVideo.NotFound")
        self.said(self.vod({"Action": "RefreshUploadVideo", "ReferenceId": "job-none"}), 404, "InvalidVideo.NotFound")
        self.assertEqual(self.vod({"Action": "RefreshUploadVideo", "ReferenceId": "job-_1"}).status, 200)
        for given, code in (({}, "MissingParameter"), ({"ImageType": "poster"}, "InvalidParameter"),
                            ({"ImageType": "cover", "ImageExt": "bmp"}, "InvalidParameter")):
            self.said(self.vod({"Action": "CreateUploadImage"} | given), 400, code)
        made = json.loads(self.vod({"Action": "CreateUploadImage", "ImageType": "cover"}).data)
        self.assertTrue(made["ImageId"] and made["ImageURL"].endswith(".png") and made["FileURL"])
        self.said(self.vod({"Action": "RefreshUploadVideo", "VideoId": made["ImageId"]}), 404, "InvalidVideo.NotFound")

    def blobs(self, made):
        return [json.loads(base64.b64decode(made[name], validate=True)) for name in ("UploadAddress", "UploadAuth")]

    def own(self, path, wish):
        answer = self.raw("POST", path, json.dumps(wish).encode())
        return answer.status, json.loads(answer.data)

    def test_own_service(self):
        status, made = self.own("/_auth", {"file": "cam one/a.MP4", "size": 5, "video": None})
        address, auth = self.blobs(made)
        self.assertEqual((status, address["Endpoint"], set(made)), (200, self.base, {"VideoId", "UploadAddress", "UploadAuth"}))
        self.assertEqual(set(auth), {"AccessKeyId", "AccessKeySecret", "SecurityToken", "Expiration", "ExpireUTCTime", "Region"})
        self.assertEqual((auth["Expiration"], auth["Region"], auth["AccessKeyId"][:4]), ("3600", "cn-shanghai", "STS."))
        self.assertAlmostEqual(signatures.moment(auth["ExpireUTCTime"]) - time.time(), 3000, delta=5)
        who = auth["AccessKeyId"], auth["AccessKeySecret"], auth["SecurityToken"]
        upload = self.start(address["FileName"], bucket=address["Bucket"], who=who)
        again = self.own("/_auth", {"file": "cam one/a.MP4", "size": 5, "video": made["VideoId"]})[1]
        address2, auth2 = self.blobs(again)
        self.assertEqual((again["VideoId"], address2), (made["VideoId"], address))
        self.assertNotEqual(auth2["AccessKeyId"], auth["AccessKeyId"])
        who = auth2["AccessKeyId"], auth2["AccessKeySecret"], auth2["SecurityToken"]
        self.taken(self.part(upload, 1, b"hello", address["FileName"], bucket=address["Bucket"], who=who))
        self.taken(self.finish(upload, [(1, b"hello")], address["FileName"], bucket=address["Bucket"], who=who))
        self.assertTrue(self.control("videos")[made["VideoId"]]["uploaded"])
        asked = {"operation": "create", "kind": "video", "file": "b.mp4", "size": 5, "reference": "again-and-again", "parameters": {"Title": "t"}}
        first, second = (self.own("/_auth", asked)[1] for _ in range(2))
        self.assertEqual(first["VideoId"], second["VideoId"])
        self.assertEqual(self.own("/_auth", {"operation": "check"}), (200, {}))
        self.assertEqual(self.own("/_auth", {"file": "a", "video": "none"})[1]["Code"], "InvalidVideo.NotFound")
        self.assertEqual(self.own("/_auth", {"file": "a.txt"})[1]["Code"], "InvalidParameter.FileName")
        self.assertTrue(self.own("/_auth", {"file": "a.jpg"})[1]["ImageURL"].endswith(".jpg"))
        sts = self.own("/_sts", {})[1]
        self.assertEqual(set(sts), {"AccessKeyId", "AccessKeySecret", "SecurityToken", "Expiration"})
        self.taken(self.oss("PUT", "a", who=(sts["AccessKeyId"], sts["AccessKeySecret"], sts["SecurityToken"])))

    def test_headers_of_the_own_service(self):
        self.control("settings", {"own_headers": {"Authorization": "Bearer hidden"}})
        try:
            statuses = [self.raw("POST", path, b'{"file":"a.mp4"}', headers).status for path in ("/_auth", "/_sts")
                        for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Bearer hidden"})]
        finally:
            self.control("settings", {"own_headers": {}})
        self.assertEqual(statuses, [401, 401, 200] * 2)
        self.assertEqual(self.sent()[-1]["headers"]["authorization"], "Bearer ***")

    def test_lifetimes(self):
        self.control("settings", {"lifetime": 1, "said_lifetime": 3600})
        auth = self.blobs(self.own("/_auth", {"file": "a.mp4"})[1])[1]
        self.assertAlmostEqual(signatures.moment(auth["ExpireUTCTime"]) - time.time(), 3600, delta=5)
        time.sleep(1.1)
        who = auth["AccessKeyId"], auth["AccessKeySecret"], auth["SecurityToken"]
        self.refused(self.oss("PUT", "a", who=who), 403, "SecurityTokenExpired")
        self.control("settings", {"say_end": False})
        self.assertNotIn("ExpireUTCTime", self.blobs(self.own("/_auth", {"file": "a.mp4"})[1])[1])
        self.faults({"do": "move", "match": {"operation": "Auth"}})
        made = self.own("/_auth", {"file": "a.mp4"})[1]
        self.faults({"do": "move", "match": {"operation": "Auth"}})
        moved = self.own("/_auth", {"file": "a.mp4", "video": made["VideoId"]})[1]
        self.assertNotEqual(self.blobs(made)[0], self.blobs(moved)[0])


# ------------------------------------------------------------------------------------------------ each fault


class Faults(Emulator):
    def lost(self, ask):
        """The request ends without an answer."""
        with self.assertRaises((http.client.RemoteDisconnected, ConnectionError, http.client.BadStatusLine)):
            ask()

    def test_error_on_the_nth_request(self):
        upload = self.start()
        self.faults({"do": "error", "status": 503, "code": "ServiceUnavailable", "match": {"operation": "UploadPart"}, "nth": 2, "times": 2})
        self.assertEqual([self.part(upload, n, b"x").status for n in (1, 2, 3, 4)], [200, 503, 503, 200])
        self.faults({"do": "error", "match": {"operation": ["UploadPart", "PutObject"], "part": 2}, "times": 0})
        self.assertEqual([self.part(upload, n, b"x").status for n in (1, 2, 2, 3)], [200, 500, 500, 200])
        self.assertEqual(self.control("faults")[0]["struck"], 2)
        self.faults({"do": "error", "status": 403, "code": "InDebt", "ec": "0003-00000999", "message": "Pay.", "match": {"method": "PUT", "key": "a"}})
        self.refused(self.oss("PUT", "a"), 403, "InDebt", "0003-00000999")
        self.taken(self.oss("PUT", "a"))
        self.faults({"do": "error", "status": 400, "code": "Throttling", "match": {"operation": "CreateUploadVideo"}})
        self.assertEqual(json.loads(self.raw("GET", "/?Action=CreateUploadVideo&Format=JSON").data)["Code"], "Throttling")
        self.faults({"do": "error", "status": 503, "match": {"operation": "Auth"}})
        self.assertEqual([self.raw("POST", "/_auth", b'{"file":"a.mp4"}').status for _ in range(2)], [503, 200])

    def test_error_before_the_body(self):
        self.faults({"do": "error", "status": 503, "code": "ServiceUnavailable", "early": True})
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as line:
            line.sendall(b"PUT /cameras/a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
            self.assertTrue(line.recv(65536).startswith(b"HTTP/1.1 503"))

    def test_connection_closed(self):
        upload = self.start()
        self.faults({"do": "close", "bytes": 300000, "match": {"operation": "UploadPart"}}, {"do": "close", "match": {"operation": "ListParts"}},
                    {"do": "close", "bytes": 0, "reset": True, "match": {"operation": "PutObject"}})
        data = os.urandom(1000000)
        self.lost(lambda: self.part(upload, 1, data))
        self.lost(lambda: self.oss("GET", "v.mp4", "uploadId=" + upload))
        self.lost(lambda: self.oss("PUT", "a", body=b"x"))
        time.sleep(0.1)
        one = self.sent(operation="UploadPart")[0]
        self.assertEqual((one["received"], one["status"], one["faults"]), (300000, None, ["close"]))
        self.assertEqual((self.control("uploads")[upload]["parts"], self.control("objects"), os.listdir(self.folder.name)), ({}, {}, []))

    def test_answer_lost(self):
        self.faults(*({"do": "lose_answer", "match": {"operation": name}} for name in
                      ("InitiateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "PutObject", "Auth", "CreateUploadVideo")))
        self.lost(self.start)
        [upload] = self.control("uploads")
        self.lost(lambda: self.part(upload, 1, b"x"))
        self.assertEqual(list(self.control("uploads")[upload]["parts"]), ["1"])
        self.lost(lambda: self.finish(upload, [(1, b"x")]))
        self.lost(lambda: self.oss("PUT", "a", body=b"x"))
        self.assertEqual((sorted(self.control("objects")), self.control("uploads")), (["cameras/a", "cameras/v.mp4"], {}))
        self.lost(lambda: self.raw("POST", "/_auth", b'{"file":"a.mp4"}'))
        self.lost(lambda: Rules.vod(self, Rules.VIDEO))
        self.assertEqual(len(self.control("videos")), 2)

    def test_callback(self):
        callback = {"x-oss-callback": base64.b64encode(b'{"callbackUrl":"http://127.0.0.1:1/","callbackBody":"x"}').decode()}
        answer = self.taken(self.oss("PUT", "a", body=b"x", headers=callback))
        self.assertEqual((answer.data, answer.getheader("Content-Type")), (b'{"Status":"OK"}', "application/json"))
        upload = self.whole()
        self.faults({"do": "callback_failed", "times": 2})
        for answer, key in ((self.oss("PUT", "b", body=b"x", headers=callback), "b"),
                            (self.finish(upload, list(enumerate(PARTS, 1)), headers=callback), "v.mp4")):
            self.refused(answer, 203, "CallbackFailed")
            self.assertTrue(answer.getheader("ETag") and answer.getheader("x-oss-hash-crc64ecma"))
            self.assertIn("cameras/" + key, self.control("objects"))

    def test_slow(self):
        self.faults({"do": "slow", "seconds": 0.5, "match": {"key": "a"}}, {"do": "slow_read", "rate": 200000, "match": {"key": "b"}})
        for key, size in (("a", 1), ("b", 100000), ("c", 1)):
            begun = time.monotonic()
            self.taken(self.oss("PUT", key, body=bytes(size)))
            self.assertAlmostEqual(time.monotonic() - begun, 0 if key == "c" else 0.5, delta=0.3)

    def test_distorted_answers(self):
        self.faults({"do": "wrong_crc", "match": {"key": "a"}}, {"do": "no_crc", "match": {"key": "b"}}, {"do": "lower_etag", "match": {"key": "c"}})
        a, b, c = (self.taken(self.oss("PUT", key, body=b"123456789")) for key in "abc")
        self.assertEqual(int(a.getheader("x-oss-hash-crc64ecma")), 0x995DC9BBDF1939FA ^ 1)
        self.assertIsNone(b.getheader("x-oss-hash-crc64ecma"))
        self.assertEqual(c.getheader("ETag"), f'"{hashlib.md5(b"123456789").hexdigest()}"')
        self.faults({"do": "cut", "bytes": 50})
        with self.assertRaises(http.client.IncompleteRead):
            self.start()
        upload = self.start()
        self.taken(self.part(upload, 1, b"123456789"))
        self.faults({"do": "loose_xml"}, {"do": "lower_etag"}, {"do": "wrong_crc"}, {"do": "no_crc", "nth": 2})
        listed = self.taken(self.oss("GET", "v.mp4", "uploadId=" + upload)).data
        self.assertIn(b"&quot;", listed)
        part = ElementTree.fromstring(listed).find("Part")
        self.assertEqual(part.findtext("ETag"), f'"{hashlib.md5(b"123456789").hexdigest()}"')
        self.assertEqual(part.findtext("HashCrc64ecma"), str(0x995DC9BBDF1939FA ^ 1))
        self.assertNotIn(b"HashCrc64ecma", self.taken(self.oss("GET", "v.mp4", "uploadId=" + upload)).data)

    def test_expiry(self):
        who = self.sts()
        upload = self.start()
        self.faults({"do": "expire", "match": {"operation": "UploadPart"}, "nth": 3})
        for n in (1, 2):
            self.taken(self.part(upload, n, b"x", who=who))
        for _ in range(2):
            self.refused(self.part(upload, 3, b"x", who=who), 403, "SecurityTokenExpired", "0002-00000007")
        who = self.sts()
        self.taken(self.part(upload, 3, b"x", who=who))
        self.faults({"do": "expire", "bytes": 400000, "match": {"part": 4}})
        self.refused(self.part(upload, 4, os.urandom(900000), who=who), 403, "SecurityTokenExpired")
        self.assertEqual((self.sent(part="4")[0]["received"], list(self.control("uploads")[upload]["parts"])), (900000, ["1", "2", "3"]))
        who = self.sts()
        self.faults({"do": "expire_now"})
        self.refused(self.part(upload, 5, b"x", who=who), 403, "SecurityTokenExpired")
        self.taken(self.part(upload, 5, b"x"))

    def test_lost_and_damaged(self):
        upload = self.start()
        self.faults({"do": "drop_part", "match": {"part": 2}}, {"do": "corrupt", "match": {"part": 3}}, {"do": "corrupt", "seen": True, "match": {"part": 4}})
        answers = [self.taken(self.part(upload, n, data)) for n, data in ((1, PARTS[0]), (2, PARTS[1]), (3, PARTS[0]), (4, PARTS[1]))]
        self.assertEqual([int(answer.getheader("x-oss-hash-crc64ecma")) == crc64(data) for answer, data in
                          zip(answers, (PARTS[0], PARTS[1], PARTS[0], PARTS[1]))], [True, True, True, False])
        self.assertEqual(list(self.control("uploads")[upload]["parts"]), ["1", "3", "4"])
        self.refused(self.finish(upload, [(1, PARTS[0]), (2, PARTS[1])]), 400, "InvalidPart")
        self.assertEqual(self.control("drop", {"bucket": "cameras", "key": "v.mp4", "part": 4}), {"lost": True})
        answer = self.taken(self.finish(upload, [(1, PARTS[0]), (3, PARTS[0])]))
        self.assertNotEqual(answer.getheader("x-oss-hash-crc64ecma"), str(crc64(PARTS[0] * 2)))
        self.assertNotEqual(self.control("objects")["cameras/v.mp4"]["crc"], str(crc64(PARTS[0] * 2)))
        self.faults({"do": "corrupt"})
        for key in "ab":
            self.taken(self.oss("PUT", key, body=b"123456789"))
        self.control("corrupt", {"bucket": "cameras", "key": "b"})
        for key in "ab":
            found = self.control("objects")["cameras/" + key]
            self.assertEqual((found["said_crc"], found["crc"] != found["said_crc"]), (str(0x995DC9BBDF1939FA), True))

    def test_abort_that_leaves(self):
        upload = self.whole()
        self.faults({"do": "abort_leaves"})
        for left in ([upload], []):
            self.taken(self.oss("DELETE", "v.mp4", "uploadId=" + upload), 204)
            self.assertEqual(list(self.control("uploads")), left)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_control(self):
        for name, wish in (("faults", [{"do": "nothing"}]), ("faults", [{"do": "slow", "second": 1}]), ("faults", [{"do": "slow", "match": {"part_number": 1}}]),
                           ("settings", {"sky": 1}), ("nothing", {}), ("corrupt", {"bucket": "a", "key": "b"})):
            self.assertEqual(self.raw("POST", "/_control/" + name, json.dumps(wish).encode()).status, 400, name)
        self.assertEqual(self.sent(), [])

    def processor_time(self):
        return sum(map(int, Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def test_many_at_once(self):
        """Requests overlap, the connection is used again, and 50 MB a second go in."""
        block = os.urandom(1 << 20) * 64
        upload = self.start()
        begun, busy = time.monotonic(), self.processor_time()
        self.taken(self.part(upload, 1, block))
        # Its own processor time, since the machine may be busy with something else.
        rates = [64 * 1.048576 / spent for spent in (time.monotonic() - begun, self.processor_time() - busy)]
        self.assertGreater(rates[1], 50)
        print("[one part: %.0f MB/s by the clock, %.0f by the processor]" % tuple(rates), file=sys.stderr)
        self.faults({"do": "slow", "seconds": 0.3, "times": 0, "match": {"operation": "UploadPart"}})
        threads = [threading.Thread(target=self.part, args=(upload, n, b"x")) for n in range(2, 6)]
        begun = time.monotonic()
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertLess(time.monotonic() - begun, 1)
        self.assertEqual(max(one["at_once"] for one in self.sent(operation="UploadPart")), 4)
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        for target in ("/cameras/a", "/_control/record", "/cameras/b"):
            connection.request("PUT" if "cam" in target else "GET", target, b"refused" if "cam" in target else None)
            line = connection.sock
            connection.getresponse().read()
            self.assertIs(connection.sock, line)
        connection.close()


class Ending(unittest.TestCase):
    def test_ends(self):
        for end in (lambda process: process.terminate(), lambda process: process.stdin.close()):
            with tempfile.TemporaryDirectory() as folder:
                process = subprocess.Popen([sys.executable, HERE / "oss_emulator.py", "--state", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                self.assertGreater(json.loads(process.stdout.readline())["port"], 0)
                end(process)
                self.assertEqual(process.wait(10), 0)
                process.stdout.close()
                process.stdin.close()


if __name__ == "__main__":
    unittest.main()
